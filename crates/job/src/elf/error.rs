//! Errors of ELF files.

/// Why a file cannot be mapped as a program: one line that names the value and the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ElfError {
    /// Not a program or shared library.
    #[error("no ELF file to load: {reason}; give a program or a shared library")]
    NotLoadable {
        /// What the file is, or lacks.
        reason: String,
    },
    /// A segment ends beyond the end of the file.
    #[error(
        "segment {number} of {bytes} bytes at {offset} ends beyond the file of {size_bytes} \
         bytes; give a file that is not truncated"
    )]
    BeyondFile {
        /// Index of its program header.
        number: usize,
        /// Offset in the file.
        offset: u64,
        /// Length in the file, in bytes.
        bytes: u64,
        /// Size of the file.
        size_bytes: u64,
    },
    /// A segment exceeds the address space.
    #[error(
        "segment {number} of {bytes} bytes at address {address:#x} reaches beyond the address \
         space of 128 TiB; give a file that can be loaded"
    )]
    TooLarge {
        /// Index of its program header.
        number: usize,
        /// Address in memory.
        address: u64,
        /// Length in memory, in bytes.
        bytes: u64,
    },
    /// A segment is longer in the file than in memory.
    #[error(
        "segment {number} has {file_bytes} bytes in the file and {memory_bytes} in memory; give a \
         file that can be loaded"
    )]
    LargerThanMemory {
        /// Index of its program header.
        number: usize,
        /// Length in the file, in bytes.
        file_bytes: u64,
        /// Length in memory, in bytes.
        memory_bytes: u64,
    },
    /// File offset and address of a segment differ modulo the page size.
    #[error(
        "segment {number} lies at {offset:#x} in the file and at {address:#x} in memory, not at \
         the same place in a page of {page_size}; give a smaller --page-size, or a file linked \
         for it"
    )]
    Unaligned {
        /// Index of its program header.
        number: usize,
        /// Offset in the file.
        offset: u64,
        /// Address in memory.
        address: u64,
        /// Page size.
        page_size: String,
    },
    /// Two segments share a page of memory.
    #[error(
        "segments {first} and {second} overlap in memory; give a file that can be loaded, or a \
         smaller --page-size"
    )]
    Overlap {
        /// Program header index of the lower one.
        first: usize,
        /// Program header index of the other one.
        second: usize,
    },
}
