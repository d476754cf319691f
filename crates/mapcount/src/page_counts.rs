//! How often each page is mapped, and how many pages of the folio are.

use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use crate::atomics::{Atomic, Atomics};
use crate::broken::Broken;
use crate::mapcount::Change;
use crate::order::Order;

/// Added to the number of mapped pages while a mapping of the whole folio exists. It is far more
/// than a folio has pages. 255 of it fit: a thread that has removed the last such mapping, and has
/// yet to take this away, lets another thread add it once more.
const ENTIRELY: u32 = 1 << 24;

/// Most mappings of a page: half of what fits, so that no number of threads goes beyond the rest
/// before one of them notices.
const MAX_OF_PAGE: u32 = i32::MAX as u32;

/// The count of mapped pages that goes with counts of pages.
///
/// One read-modify-write for each page, and one more if pages became mapped or are no longer.
pub struct PageCounts<A: Atomics> {
    mapped: A::U32,
}

impl<A: Atomics> Default for PageCounts<A> {
    fn default() -> Self {
        PageCounts { mapped: A::U32::default() }
    }
}

impl<A: Atomics> PageCounts<A> {
    /// One mapping more of each of `pages`.
    #[inline]
    pub fn map<'a>(&self, order: Order, pages: impl Iterator<Item = &'a A::Page>) -> Change {
        let mut first = 0;
        for page in pages {
            let old = page.fetch_add(1, Relaxed);
            if old >= MAX_OF_PAGE {
                page.fetch_sub(1, Relaxed);
                Broken::TooManyMappings { most: MAX_OF_PAGE }.panic();
            }
            first += u32::from(old == 0);
        }
        if first == 0 {
            return Change::default();
        }
        let old = self.mapped.fetch_add(first, Relaxed);
        Change { pages: seen(order, old.wrapping_add(first)) - seen(order, old), in_part: false }
    }

    /// One mapping less of each of `pages`.
    #[inline]
    pub fn unmap<'a>(&self, order: Order, pages: impl Iterator<Item = &'a A::Page>) -> Change {
        let mut last = 0;
        for page in pages {
            // Whoever takes away the last mapping comes after those who added one, and so after
            // they have counted the page as mapped.
            let old = page.fetch_sub(1, AcqRel);
            if old == 0 {
                page.fetch_add(1, Relaxed);
                Broken::PageNotMapped.panic();
            }
            last += u32::from(old == 1);
        }
        if last == 0 {
            return Change::default();
        }
        self.fewer(order, last)
    }

    /// The first mapping of the whole folio.
    pub fn map_entirely(&self, order: Order) -> Change {
        let old = self.mapped.fetch_add(ENTIRELY, Relaxed);
        Change { pages: seen(order, old.wrapping_add(ENTIRELY)) - seen(order, old), in_part: false }
    }

    /// The last mapping of the whole folio is gone.
    pub fn unmap_entirely(&self, order: Order) -> Change {
        self.fewer(order, ENTIRELY)
    }

    fn fewer(&self, order: Order, fewer: u32) -> Change {
        let old = self.mapped.fetch_sub(fewer, Relaxed);
        let new = old.checked_sub(fewer).unwrap_or_else(|| Broken::PageNotMapped.panic());
        Change {
            pages: seen(order, new) - seen(order, old),
            in_part: new > 0 && new < order.pages() as u32,
        }
    }
}

/// Pages that are mapped in any way, by the count.
fn seen(order: Order, mapped: u32) -> i64 {
    if mapped >= ENTIRELY { order.pages() as i64 } else { i64::from(mapped) }
}
