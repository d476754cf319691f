//! What can be wrong with a program or a shared library.

/// Why a file cannot be mapped as a program is: one line that names the value and the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ElfError {
    /// A file that is no program and no shared library.
    #[error("no ELF file to load: {reason}; give a program or a shared library")]
    NotLoadable {
        /// What it is, or lacks.
        reason: String,
    },
    /// A segment ends beyond the file.
    #[error(
        "segment {number} of {bytes} bytes at {offset} ends beyond the file of {size_bytes} \
         bytes; give a file that is not truncated"
    )]
    BeyondFile {
        /// Its program header, from 0.
        number: usize,
        /// First byte in the file.
        offset: u64,
        /// Bytes in the file.
        bytes: u64,
        /// Bytes of the file.
        size_bytes: u64,
    },
    /// A segment reaches beyond the address space.
    #[error(
        "segment {number} of {bytes} bytes at address {address:#x} reaches beyond the address \
         space of 128 TiB; give a file that can be loaded"
    )]
    TooLarge {
        /// Its program header, from 0.
        number: usize,
        /// First byte in memory.
        address: u64,
        /// Bytes in memory.
        bytes: u64,
    },
    /// A segment has more bytes in the file than in memory.
    #[error(
        "segment {number} has {file_bytes} bytes in the file and {memory_bytes} in memory; give a \
         file that can be loaded"
    )]
    LargerThanMemory {
        /// Its program header, from 0.
        number: usize,
        /// Bytes in the file.
        file_bytes: u64,
        /// Bytes in memory.
        memory_bytes: u64,
    },
    /// A segment cannot be mapped by whole pages.
    #[error(
        "segment {number} lies at {offset:#x} in the file and at {address:#x} in memory, not at \
         the same place in a page of {page_size}; give a smaller --page-size, or a file linked \
         for it"
    )]
    Unaligned {
        /// Its program header, from 0.
        number: usize,
        /// First byte in the file.
        offset: u64,
        /// First byte in memory.
        address: u64,
        /// The page size.
        page_size: String,
    },
    /// Two ELF segments share a page of memory.
    #[error(
        "segments {first} and {second} overlap in memory; give a file that can be loaded, or a \
         smaller --page-size"
    )]
    Overlap {
        /// Job header of the lower one, from 0.
        first: usize,
        /// Job header of the other.
        second: usize,
    },
}
