//! Opening files that another process has mapped.
//!
//! The process may be hostile: a path it controls can be a FIFO, a device or a symbolic link, can
//! be replaced at any time, and can lie on a network or FUSE filesystem that never responds.

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

/// Opens the regular file mapped at `range` read-only. Nothing else is ever opened, and the call
/// returns within 100 ms whatever the process does.
///
/// # Errors
/// [`Error::NotOpened`] with the reason: the range is anonymous, the filesystem may hang, read
/// permission is missing, the file is unlinked and open nowhere, or opening it timed out.
pub fn open(pid: u32, range: &MappedRange) -> Result<File, Error> {
    let file = range.file.clone();
    let path = file.as_ref().map(|file| file.path.clone()).unwrap_or_default();
    let not_opened = |reason: String| Error::NotOpened { pid, path, reason };
    let Some(file) = file else { return Err(not_opened("it is no file".into())) };
    let address = range.address;
    opener::run_with_timeout(move || candidate::open(pid, address, &file)).map_err(not_opened)
}

/// Device and inode of `file` as its mappings report them; stat(2) reports another device on some
/// filesystems. Maps one page with PROT_NONE and queries that mapping.
fn mapped_id(file: &File) -> Option<FileId> {
    let (protection, flags) = (ProtFlags::empty(), MapFlags::SHARED);
    // SAFETY: the kernel chooses an unused address.
    let address = unsafe { mmap(null_mut(), page_size(), protection, flags, file, 0) }.ok()?;
    let mapped = process::vma_at(std::process::id(), address.addr() as u64);
    // SAFETY: mapped above; no reference into it exists.
    let _ = unsafe { munmap(address, page_size()) };
    mapped.map(|vma| vma.file)
}

/// Whether `path` matches any of the fnmatch(3) `patterns`.
pub fn matches_any(patterns: &[OsString], path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    patterns.iter().filter_map(|text| CString::new(text.as_bytes()).ok()).any(|pattern| {
        // SAFETY: both strings are NUL-terminated and outlive the call.
        unsafe { libc::fnmatch(pattern.as_ptr(), path.as_ptr(), 0) == 0 }
    })
}
