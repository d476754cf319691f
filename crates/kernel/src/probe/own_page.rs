//! A page of the child's own memory, by which its parent sees when the kernel counts.

use std::ffi::c_void;
use std::ptr::null_mut;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::{Error, page_size};

/// A page of anonymous memory that is charged to the child's memory cgroup until this drops.
pub(super) struct ChargedPage(*mut c_void);

impl ChargedPage {
    /// A page of its own mapping: no page that the child had before.
    pub(super) fn new() -> Result<ChargedPage, Error> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let bytes = page_size() as usize;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe { mmap_anonymous(null_mut(), bytes, protection, flags) }
            .map_err(|errno| Error::call("map a page of memory", errno))?;
        // SAFETY: it was mapped writable above.
        unsafe { base.cast::<u8>().write_volatile(1) };
        Ok(ChargedPage(base))
    }
}

impl Drop for ChargedPage {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, to which nothing else refers.
        let _ = unsafe { munmap(self.0, page_size() as usize) };
    }
}
