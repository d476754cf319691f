//! Opening what a process has mapped.
//!
//! The process may mean harm: what it names may be a FIFO, a device, a symbolic link, another file
//! a moment later, or a file of a server that never answers.

mod candidate;
mod filesystem;
mod opener;

use std::ffi::{CString, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

use crate::{Error, FileId, MappedRange, process};

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
    opener::run_with_timeout(move || candidate::open(pid, address, &file)).map_err(not_opened)
}

/// It is mapped for a moment and not touched, as stat(2) has other devices for some filesystems
/// than mappings have.
fn mapped_id(file: &File) -> Option<FileId> {
    let (protection, flags) = (ProtFlags::empty(), MapFlags::SHARED);
    // SAFETY: the kernel chooses an address where nothing is.
    let address = unsafe { mmap(null_mut(), page_size(), protection, flags, file, 0) }.ok()?;
    let mapped = process::vma_at(std::process::id(), address.addr() as u64);
    // SAFETY: it was mapped just now, and nobody has a part of it.
    let _ = unsafe { munmap(address, page_size()) };
    mapped.map(|vma| vma.file)
}

/// Whether one of `patterns`, as for fnmatch(3), is one of `path`.
pub fn matches_any(patterns: &[OsString], path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    patterns.iter().filter_map(|text| CString::new(text.as_bytes()).ok()).any(|pattern| {
        // SAFETY: both texts end with a NUL and live on.
        unsafe { libc::fnmatch(pattern.as_ptr(), path.as_ptr(), 0) == 0 }
    })
}
