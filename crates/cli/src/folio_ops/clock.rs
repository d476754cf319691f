//! The clocks of this machine, and huge pages for memory that is timed.

use std::ops::Range;

use rustix::mm::{Advice, madvise};
use rustix::time::{ClockId, clock_gettime};

/// Time that this thread has run for, in nanoseconds.
pub fn thread_ns() -> u64 {
    ns(ClockId::ThreadCPUTime)
}

/// Time that goes on while threads wait, in nanoseconds.
pub fn wall_ns() -> u64 {
    ns(ClockId::Monotonic)
}

fn ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Asks for huge pages, through which a kernel reaches its own memory. Where there are none,
/// everything is measured through small ones.
pub fn huge_pages(addresses: Range<usize>) {
    const PAGE: usize = 4096;
    let start = addresses.start.next_multiple_of(PAGE);
    let bytes = addresses.end.saturating_sub(start) / PAGE * PAGE;
    // SAFETY: this advice changes neither what is in memory nor whether it may be used.
    let _ = unsafe { madvise(start as *mut _, bytes, Advice::LinuxHugepage) };
}
