//! Huge pages for memory used in timed code.

use std::ops::Range;

use rustix::mm::{Advice, madvise};

/// Advises MADV_HUGEPAGE, since the kernel maps its own memory with huge pages. If the advice is
/// refused, small pages are measured.
pub fn advise_huge_pages(addresses: Range<usize>) {
    const PAGE: usize = 4096;
    let start = addresses.start.next_multiple_of(PAGE);
    let bytes = addresses.end.saturating_sub(start) / PAGE * PAGE;
    // SAFETY: the advice changes neither contents nor permissions.
    let _ = unsafe { madvise(start as *mut _, bytes, Advice::LinuxHugepage) };
}
