//! Huge pages for memory that is timed.

use std::ops::Range;

use rustix::mm::{Advice, madvise};

/// Advises MADV_HUGEPAGE, as the kernel maps its own memory by huge pages. Without them, small
/// pages are measured.
pub fn advise_huge_pages(addresses: Range<usize>) {
    const PAGE: usize = 4096;
    let start = addresses.start.next_multiple_of(PAGE);
    let bytes = addresses.end.saturating_sub(start) / PAGE * PAGE;
    // SAFETY: the advice changes neither contents nor permissions.
    let _ = unsafe { madvise(start as *mut _, bytes, Advice::LinuxHugepage) };
}
