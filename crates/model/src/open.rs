//! Open files.

use filemap_core::readahead::{Limits, ReadaheadState};
use filemap_core::units::FileId;

/// An open file description: what `open(2)` makes, and what mappings keep a reference to.
#[derive(Debug)]
pub struct OpenFile {
    /// The file.
    pub file: FileId,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Which of the devices it lies on.
    pub device: usize,
    /// What bounds readahead and fault-around in it.
    pub limits: Limits,
    /// Its readahead state, which no other open file shares.
    pub ra: ReadaheadState,
}
