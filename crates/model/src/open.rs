//! Open files.

use filemap_core::readahead::{Limits, ReadaheadState};
use filemap_core::units::{FileId, PageCount};

/// An open file description: what `open(2)` makes, and what mappings keep a reference to.
#[derive(Debug)]
pub struct OpenFile {
    /// Which of the open file descriptions it is.
    pub number: u32,
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
    /// The readahead size of its device, which advice for it goes by.
    pub device_ra_pages: PageCount,
    /// POSIX_FADV_NOREUSE was given for it.
    pub no_reuse: bool,
}

impl OpenFile {
    /// What `open(2)` makes.
    pub fn new(file: FileId, size_bytes: u64, device: usize, limits: Limits) -> OpenFile {
        OpenFile {
            number: 0,
            file,
            size_bytes,
            device,
            limits,
            ra: ReadaheadState::NEW,
            device_ra_pages: limits.ra_pages,
            no_reuse: false,
        }
    }
}
