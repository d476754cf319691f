//! Huge pages for memory that is timed.

use std::ops::Range;

use rustix::mm::{Advice, madvise};

/// Asks for huge pages, through which a kernel reaches its own memory. Where there are none,
/// everything is measured through small ones.
pub fn advise_huge_pages(addresses: Range<usize>) {
    const PAGE: usize = 4096;
    let start = addresses.start.next_multiple_of(PAGE);
    let bytes = addresses.end.saturating_sub(start) / PAGE * PAGE;
    // SAFETY: this advice changes neither what is in memory nor whether it may be used.
    let _ = unsafe { madvise(start as *mut _, bytes, Advice::LinuxHugepage) };
}
