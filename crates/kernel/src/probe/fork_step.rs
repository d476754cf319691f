//! The step that forks a child which ends at once.

use std::ffi::{c_int, c_void};
use std::io::Error as IoError;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::{Error, page_size};

/// The stack of the children that a thread forks, one after the other. They have none of their
/// parent's, as [`super::own_memory::OwnMemory::keep_from_forks`] leaves that out.
pub(super) struct ForkStack {
    top: *mut c_void,
}

// SAFETY: one thread has it at a time, and its addresses are good in all.
unsafe impl Send for ForkStack {}

impl ForkStack {
    pub(super) fn new() -> Result<ForkStack, Error> {
        let bytes = 4 * page_size() as usize;
        // Shared with the child: writing to it is no fault of the parent's after a fork.
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe { mmap_anonymous(null_mut(), bytes, protection, flags) };
        let base = base.map_err(|errno| Error::call("map the stack of a child", errno))?;
        // SAFETY: the end of what was mapped, and the page below it, which is writable.
        let top = unsafe {
            let top = base.cast::<u8>().add(bytes);
            top.sub(1).write_volatile(0);
            top.cast()
        };
        Ok(ForkStack { top })
    }

    /// Forks a child that ends at once, and waits for it. No signal tells its end. Returns how long
    /// it took to fork.
    pub(super) fn fork(&self) -> Result<Duration, Error> {
        let failed = |error| Error::call("fork a child", error);
        let start = Instant::now();
        // SAFETY: the child has a stack of its own, and runs nothing but `ends`, which looks at no
        // memory; the C library has registered none with the kernel either, as the probe was
        // started without restartable sequences.
        let pid = unsafe { libc::clone(child_main, self.top, 0, null_mut()) };
        let took = start.elapsed();
        if pid < 0 {
            return Err(failed(IoError::last_os_error()));
        }
        let mut status = 0;
        loop {
            // SAFETY: the status lives through the call.
            if unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } == pid {
                break;
            }
            let error = IoError::last_os_error();
            if error.raw_os_error() != Some(libc::EINTR) {
                return Err(failed(error));
            }
        }
        match status {
            0 => Ok(took),
            _ => Err(Error::Child { message: format!("a forked child ended with {status:#x}") }),
        }
    }
}

/// All that the child does; where it returns, the child ends.
extern "C" fn child_main(_: *mut c_void) -> c_int {
    0
}
