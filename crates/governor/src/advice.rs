//! What the kernel is asked for. None of it changes errno.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;

use rustix::mm::{Advice, madvise};

fn advise(range: &Range<usize>, advice: Advice) -> bool {
    let address = ptr::with_exposed_provenance_mut::<c_void>(range.start);
    // SAFETY: none of the kinds of advice below changes what memory contains, whatever is
    // mapped there by now.
    unsafe { madvise(address, range.len(), advice) }.is_ok()
}

/// The kernel reads single pages on a miss in `range`. Returns whether it took that.
pub fn single_pages(range: &Range<usize>) -> bool {
    advise(range, Advice::Random)
}

/// The kernel reads ahead in `range` as it does by itself.
pub fn as_by_itself(range: &Range<usize>) -> bool {
    advise(range, Advice::Normal)
}

/// The kernel begins to read the pages of `range` that are not in the page cache.
pub fn read(range: &Range<usize>) -> bool {
    advise(range, Advice::WillNeed)
}

/// The kernel reads ahead in `range` as for who reads it in order.
pub fn in_order(range: &Range<usize>) -> bool {
    advise(range, Advice::Sequential)
}

/// The kernel reads and maps all pages of `range` before this returns.
pub fn populate(range: &Range<usize>) -> bool {
    advise(range, Advice::LinuxPopulateRead)
}
