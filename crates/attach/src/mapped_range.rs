//! Address ranges that a process has mapped.

use std::path::PathBuf;

/// Identity of a file as the kernel reports it for mappings: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Major number of the superblock's device (`s_dev`). It can differ from `st_dev` of stat(2),
    /// as on Btrfs.
    pub major: u32,
    pub minor: u32,
    pub inode: u64,
}

/// A mapped file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MappedFile {
    pub id: FileId,
    /// Path in the process's root directory and mount namespace at the time of mapping. It may lead
    /// elsewhere in other namespaces or by now; identify the file by [`FileId`].
    pub path: PathBuf,
}

/// An address range with uniform backing, protection and sharing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedRange {
    pub address: u64,
    pub length_bytes: u64,
    /// File offset of the first byte.
    pub offset_bytes: u64,
    /// Backing file; `None` for anonymous memory and special mappings.
    pub file: Option<MappedFile>,
    /// `PROT_` bits.
    pub protection: u32,
    /// `MAP_SHARED` rather than `MAP_PRIVATE`.
    pub is_shared: bool,
}

impl MappedRange {
    /// End address, exclusive.
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.length_bytes)
    }

    /// Whether the range includes `address`.
    pub fn contains(&self, address: u64) -> bool {
        (self.address..self.end()).contains(&address)
    }

    /// Whether the range may hold copy-on-write pages, which no file contains.
    pub fn is_private_writable(&self) -> bool {
        !self.is_shared && self.protection & libc::PROT_WRITE.cast_unsigned() != 0
    }

    /// The intersection with `start..end`, with the file offset adjusted; `None` if empty.
    pub fn part(&self, start: u64, end: u64) -> Option<MappedRange> {
        let (start, end) = (start.max(self.address), end.min(self.end()));
        (start < end).then(|| MappedRange {
            address: start,
            length_bytes: end - start,
            offset_bytes: self.offset_bytes + (start - self.address),
            ..self.clone()
        })
    }
}
