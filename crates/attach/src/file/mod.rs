//! Opening what a process has mapped.
//!
//! The process may mean harm: what it names may be a FIFO, a device, a symbolic link, another file
//! a moment later, or a file of a server that never answers.

mod candidate;
mod filesystem;
mod identity;
mod opener;
mod pattern;

use std::fs::File;

use crate::{Error, MappedRange};

pub use pattern::any_matches;

/// Opens the regular file that a process has mapped at `range`, to be read only. Nothing else is
/// opened, and it takes 100 ms at most, whatever the process does.
///
/// # Errors
/// [`Error::NotOpened`] says why: there is no file, it is on a filesystem that may never answer,
/// this user may not read it, it is gone and nobody has it open, or it did not answer in time.
pub fn open(pid: u32, range: &MappedRange) -> Result<File, Error> {
    let file = range.file.clone();
    let path = file.as_ref().map(|file| file.path.clone()).unwrap_or_default();
    let not_opened = |reason: String| Error::NotOpened { pid, path, reason };
    let Some(file) = file else { return Err(not_opened("it is no file".into())) };
    let address = range.address;
    opener::in_time(move || candidate::open(pid, address, &file)).map_err(not_opened)
}
