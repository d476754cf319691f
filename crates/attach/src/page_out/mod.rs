//! Reclaims pages of a running process without stopping any of its threads.

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

/// Maximum number of ranges per process_madvise(2): `UIO_MAXIOV`.
const MAX_RANGES: usize = 1024;

/// Drains the per-CPU LRU batches, so that pages just read become reclaimable. POSIX_FADV_DONTNEED
/// of a page that cannot be invalidated makes the kernel do so on all CPUs (lru_add_drain_all); the
/// first page of our own executable is mapped, and hence such a page.
pub fn drain_lru_batches() {
    if let Ok(own) = File::open("/proc/self/exe") {
        let first = NonZeroU64::new(rustix::param::page_size() as u64);
        let _ = fadvise(&own, 0, first, Advice::DontNeed);
    }
}

/// Handle for reclaiming pages of a process, valid until its exec.
#[derive(Debug)]
pub struct PageOut {
    process: OwnedFd,
    page_table: PageTable,
}

impl PageOut {
    /// Opens a process by its pidfd and its `pagemap`.
    ///
    /// # Errors
    /// The process is gone.
    pub fn open(pid: u32) -> Result<PageOut, Error> {
        let gone = || Error::Gone { pid };
        let id = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
        let process = pidfd_open(id, PidfdFlags::empty()).map_err(|_| gone())?;
        let page_table = PageTable::open(pid).ok_or_else(gone)?;
        Ok(PageOut { process, page_table })
    }

    /// Unmaps the pages at `addresses` from the process and evicts them from the page cache
    /// (process_madvise(2) with MADV_PAGEOUT), unless another process maps them or they are dirty.
    /// The next touch of an evicted page is a major fault; nothing the program wrote is lost.
    /// Unmapped and locked pages are skipped.
    ///
    /// # Errors
    /// The kernel predates Linux 5.10, or the caller lacks CAP_SYS_NICE or ptrace access to the
    /// process.
    pub fn reclaim(&self, addresses: impl Iterator<Item = u64>) -> Result<(), Error> {
        let page_bytes = rustix::param::page_size();
        let range = |address| libc::iovec {
            iov_base: page_start(address) as *mut libc::c_void,
            iov_len: page_bytes,
        };
        let ranges: Vec<libc::iovec> = addresses.map(range).collect();
        for mut ranges in ranges.chunks(MAX_RANGES) {
            while !ranges.is_empty() {
                // The call stops at the first range that fails, and returns the bytes advised
                // before it.
                let done = match self.advise(ranges) {
                    Ok(bytes) => bytes / page_bytes + 1,
                    Err(cause) => match cause.raw_os_error() {
                        Some(libc::ESRCH) => return Ok(()),
                        Some(libc::ENOMEM | libc::EINVAL) => 1,
                        _ => {
                            let action = "taking pages from a process (process_madvise)";
                            return Err(Error::refusal(action, cause, "run this as real root"));
                        }
                    },
                };
                ranges = &ranges[done.min(ranges.len())..];
            }
        }
        Ok(())
    }

    /// Whether the page at `address` is present in the page table of the process.
    pub fn is_mapped(&self, address: u64) -> bool {
        let (start, mut has) = (page_start(address), false);
        self.page_table.scan(start, start + rustix::param::page_size() as u64, |_| has = true);
        has
    }

    /// Advises MADV_PAGEOUT on `ranges`, and returns the number of bytes advised.
    fn advise(&self, ranges: &[libc::iovec]) -> io::Result<usize> {
        // SAFETY: the kernel reads `ranges`; the addresses in them belong to the other process.
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

/// Rounds an address down to a page boundary.
fn page_start(address: u64) -> u64 {
    let page_bytes = rustix::param::page_size() as u64;
    address / page_bytes * page_bytes
}
