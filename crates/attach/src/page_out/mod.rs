//! Takes pages from a process that runs, without holding any of its threads.

mod changes;
mod recent;

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::Error;
use crate::follow::PageTable;

pub use changes::PageReclaimer;
pub use recent::MAX_OPEN_PAGES;

/// The kernel takes so many ranges at a time (`UIO_MAXIOV`).
const MAX_RANGES: usize = 1024;

/// Has pages that were just read, or could not be dropped, come to the lists from which they can be
/// taken. The kernel does so on all CPUs where a page is to be dropped that is mapped, as the first
/// of this program is.
pub fn drain_lru_batches() {
    if let Ok(own) = File::open("/proc/self/exe") {
        let first = NonZeroU64::new(rustix::param::page_size() as u64);
        let _ = fadvise(&own, 0, first, Advice::DontNeed);
    }
}

/// A process from which pages can be taken, as long as it is the same program.
#[derive(Debug)]
pub struct PageOut {
    process: OwnedFd,
    page_table: PageTable,
}

impl PageOut {
    /// # Errors
    /// The process is gone.
    pub fn open(pid: u32) -> Result<PageOut, Error> {
        let gone = || Error::Gone { pid };
        let id = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
        let process = pidfd_open(id, PidfdFlags::empty()).map_err(|_| gone())?;
        let page_table = PageTable::open(pid).ok_or_else(gone)?;
        Ok(PageOut { process, page_table })
    }

    /// Takes the pages at `addresses` from the process and from the page cache, as far as nothing
    /// else has them mapped and they are not changed (process_madvise(2) with MADV_PAGEOUT). The
    /// next touch of one that was taken is a major fault. Nothing that the program has written is
    /// lost. A page that no mapping has any more, or that is locked, is passed over.
    ///
    /// # Errors
    /// Before Linux 5.10; not CAP_SYS_NICE and the right to trace the process.
    pub fn reclaim(&self, addresses: impl Iterator<Item = u64>) -> Result<(), Error> {
        let page_bytes = rustix::param::page_size();
        let range = |address| libc::iovec {
            iov_base: page_start(address) as *mut libc::c_void,
            iov_len: page_bytes,
        };
        let ranges: Vec<libc::iovec> = addresses.map(range).collect();
        for mut ranges in ranges.chunks(MAX_RANGES) {
            while !ranges.is_empty() {
                // It stops at the first that cannot be taken, and says how far it has come.
                let done = match self.advise(ranges) {
                    Ok(bytes) => bytes / page_bytes + 1,
                    Err(cause) => match cause.raw_os_error() {
                        Some(libc::ESRCH) => return Ok(()),
                        Some(libc::ENOMEM | libc::EINVAL) => 1,
                        _ => {
                            let what = "taking pages from a process (process_madvise)";
                            return Err(Error::refused(what, cause, "run this as real root"));
                        }
                    },
                };
                ranges = &ranges[done.min(ranges.len())..];
            }
        }
        Ok(())
    }

    /// Whether the page at `address` has an entry in the page table of the process.
    pub fn is_mapped(&self, address: u64) -> bool {
        let (start, mut has) = (page_start(address), false);
        self.page_table.scan(start, start + rustix::param::page_size() as u64, |_| has = true);
        has
    }

    /// Returns how many bytes were advised.
    fn advise(&self, ranges: &[libc::iovec]) -> io::Result<usize> {
        // SAFETY: the kernel reads `ranges`; the addresses in them are the other process's.
        let advised = unsafe {
            libc::syscall(
                libc::SYS_process_madvise,
                self.process.as_raw_fd(),
                ranges.as_ptr(),
                ranges.len(),
                libc::MADV_PAGEOUT,
                0,
            )
        };
        usize::try_from(advised).map_err(|_| io::Error::last_os_error())
    }
}

/// Where the page begins that has an address.
fn page_start(address: u64) -> u64 {
    let page_bytes = rustix::param::page_size() as u64;
    address / page_bytes * page_bytes
}
