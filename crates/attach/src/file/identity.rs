//! Which file the kernel would say that a mapping of it has.

use std::fs::File;
use std::ptr::null_mut;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

use crate::{FileId, process};

/// It is mapped for a moment and not touched, as stat(2) has other devices for some filesystems
/// than mappings have.
pub fn of(file: &File) -> Option<FileId> {
    let (protection, flags) = (ProtFlags::empty(), MapFlags::SHARED);
    // SAFETY: the kernel chooses an address where nothing is.
    let address = unsafe { mmap(null_mut(), page_size(), protection, flags, file, 0) }.ok()?;
    let mapped = process::mapped_at(std::process::id(), address.addr() as u64);
    // SAFETY: it was mapped just now, and nobody has a part of it.
    let _ = unsafe { munmap(address, page_size()) };
    mapped.map(|vma| vma.file)
}
