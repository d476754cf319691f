//! Takes pages from a process that runs, without holding any of its threads.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::Error;

/// The kernel takes so many ranges at a time (`UIO_MAXIOV`).
const MOST_RANGES: usize = 1024;

/// A process from which pages can be taken.
#[derive(Debug)]
pub struct PageOut(OwnedFd);

impl PageOut {
    /// # Errors
    /// The process is gone.
    pub fn of(pid: u32) -> Result<PageOut, Error> {
        let gone = || Error::Gone { pid };
        let id = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
        pidfd_open(id, PidfdFlags::empty()).map(PageOut).map_err(|_| gone())
    }

    /// Takes the pages at `addresses` from the process and from the page cache, as far as no other
    /// process has them mapped and they are not changed (process_madvise(2) with MADV_PAGEOUT).
    /// The next touch of one that was taken is a major fault. Nothing that the program has written
    /// is lost. A page that no mapping has any more is passed over.
    ///
    /// # Errors
    /// Not CAP_SYS_NICE, which lets a process do this to another one.
    pub fn take(&self, addresses: impl Iterator<Item = u64>) -> Result<(), Error> {
        let page_bytes = rustix::param::page_size();
        let ranges: Vec<libc::iovec> = addresses
            .map(|address| libc::iovec {
                iov_base: (address as usize / page_bytes * page_bytes) as *mut libc::c_void,
                iov_len: page_bytes,
            })
            .collect();
        for mut ranges in ranges.chunks(MOST_RANGES) {
            while !ranges.is_empty() {
                let done = self.advise(ranges);
                match done {
                    Err(cause) if cause.raw_os_error() == Some(libc::EPERM) => {
                        let remedy = "run this as root";
                        return Err(Error::refused("process_madvise(2)", cause, remedy));
                    }
                    // It stops at the first that cannot be taken, and says how far it has come.
                    done => {
                        ranges = &ranges[(done.unwrap_or(0) / page_bytes + 1).min(ranges.len())..]
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns how many bytes were advised.
    fn advise(&self, ranges: &[libc::iovec]) -> io::Result<usize> {
        // SAFETY: the kernel reads `ranges`; the addresses in them are the other process's.
        let advised = unsafe {
            libc::syscall(
                libc::SYS_process_madvise,
                self.0.as_raw_fd(),
                ranges.as_ptr(),
                ranges.len(),
                libc::MADV_PAGEOUT,
                0,
            )
        };
        usize::try_from(advised).map_err(|_| io::Error::last_os_error())
    }
}
