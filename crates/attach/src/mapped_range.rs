//! What a process has mapped.

use std::path::PathBuf;

/// A file, by what the kernel tells of its mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Of the device that its filesystem has, which can differ from what stat(2) says (Btrfs).
    pub major: u32,
    pub minor: u32,
    pub inode: u64,
}

/// A mapped file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MappedFile {
    pub id: FileId,
    /// Its path in the process' own root directory and mount namespace when it was mapped. It is
    /// no way to the file for anybody else: see [`crate::FileId`].
    pub path: PathBuf,
}

/// A range of addresses that a process has mapped in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedRange {
    pub address: u64,
    pub length_bytes: u64,
    /// Where it begins in the file, in bytes.
    pub offset_bytes: u64,
    /// `None` where it is no file's.
    pub file: Option<MappedFile>,
    /// `PROT_` bits.
    pub protection: u32,
    /// `MAP_SHARED` rather than `MAP_PRIVATE`.
    pub is_shared: bool,
}

impl MappedRange {
    /// The address after its last byte.
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.length_bytes)
    }

    /// Whether an address is in it.
    pub fn contains(&self, address: u64) -> bool {
        (self.address..self.end()).contains(&address)
    }

    /// Whether what was written there may be in no file.
    pub fn is_private_writable(&self) -> bool {
        !self.is_shared && self.protection & libc::PROT_WRITE.cast_unsigned() != 0
    }

    /// The part of it from `start` to `end`; `None` where nothing is left.
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
