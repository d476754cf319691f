//! The base: pages have counts, and owners are unknown.

use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use crate::atomics::{Atomic, Atomics, StdAtomics};
use crate::error::Misuse;
use crate::folio::Order;
use crate::mapcount::{Mapcount, Pages, check_batch};
use crate::mm_id::MmId;

/// A count for each page, the number of mapped pages, and the number of all mappings.
///
/// A batch of n pages is n + 1 read-modify-writes (each page, and the number of mappings), and one
/// more, on the number of mapped pages, if pages become mapped or unmapped.
///
/// Mirrors `__folio_add_rmap` and `__folio_remove_rmap`, 6.12. Test: `tests/atomic_operations.rs`.
pub struct PageMapcount<A: Atomics = StdAtomics> {
    mappings: A::U32,
    pages: PageCounts<A>,
}

impl<A: Atomics> Default for PageMapcount<A> {
    fn default() -> Self {
        PageMapcount { mappings: A::U32::default(), pages: PageCounts::default() }
    }
}

impl<A: Atomics> Mapcount for PageMapcount<A> {
    type Page = A::Page;

    const MAX_MAPPINGS: u32 = i32::MAX as u32;

    #[inline]
    fn map<'a>(&self, order: Order, _: MmId, pages: impl Pages<'a, A::Page>) -> i64 {
        let count = check_batch(order, pages.len());
        let old = self.mappings.fetch_add(count, Relaxed);
        if old.saturating_add(count) > Self::MAX_MAPPINGS {
            self.mappings.fetch_sub(count, Relaxed);
            Misuse::TooManyMappings { max: Self::MAX_MAPPINGS }.panic();
        }
        self.pages.map(pages)
    }

    #[inline]
    fn unmap<'a>(&self, order: Order, _: MmId, pages: impl Pages<'a, A::Page>) -> i64 {
        let count = check_batch(order, pages.len());
        if self.mappings.fetch_sub(count, Relaxed) < count {
            self.mappings.fetch_add(count, Relaxed);
            Misuse::NotMapped.panic();
        }
        self.pages.unmap(pages)
    }

    #[inline]
    fn mappings(&self) -> u32 {
        self.mappings.load(Relaxed)
    }

    /// One mapping has one owner; more may be of one mm or of several.
    fn maybe_shared(&self) -> bool {
        self.mappings() > 1
    }

    /// Owners are unknown, so pages of a large folio are never reused.
    fn owned_by(&self, _: MmId) -> Option<u32> {
        None
    }

    fn page_mappings(&self, page: &A::Page) -> Option<u32> {
        Some(page.load(Relaxed))
    }
}

/// Maximum number of mappings of a page: half of what fits, so that no number of threads overflows
/// the rest before one of them notices.
const MAX_PAGE_MAPPINGS: u32 = i32::MAX as u32;

/// The number of mapped pages, for schemes that count pages.
///
/// A batch is one read-modify-write for each page, and one more if pages become mapped or unmapped.
pub(crate) struct PageCounts<A: Atomics> {
    mapped_pages: A::U32,
}

impl<A: Atomics> Default for PageCounts<A> {
    fn default() -> Self {
        PageCounts { mapped_pages: A::U32::default() }
    }
}

impl<A: Atomics> PageCounts<A> {
    /// Adds a mapping of each of `pages`. Returns how many became mapped.
    #[inline]
    pub fn map<'a>(&self, pages: impl Iterator<Item = &'a A::Page>) -> i64 {
        let mut first = 0;
        for page in pages {
            let old = page.fetch_add(1, Relaxed);
            if old >= MAX_PAGE_MAPPINGS {
                page.fetch_sub(1, Relaxed);
                Misuse::TooManyMappings { max: MAX_PAGE_MAPPINGS }.panic();
            }
            first += u32::from(old == 0);
        }
        if first > 0 {
            self.mapped_pages.fetch_add(first, Relaxed);
        }
        i64::from(first)
    }

    /// Removes a mapping of each of `pages`. Returns minus the number that became unmapped.
    #[inline]
    pub fn unmap<'a>(&self, pages: impl Iterator<Item = &'a A::Page>) -> i64 {
        let mut last = 0;
        for page in pages {
            // Orders the last unmap after the maps before it, which have counted the page as
            // mapped.
            let old = page.fetch_sub(1, AcqRel);
            if old == 0 {
                page.fetch_add(1, Relaxed);
                Misuse::PageNotMapped.panic();
            }
            last += u32::from(old == 1);
        }
        if last > 0 && self.mapped_pages.fetch_sub(last, Relaxed) < last {
            Misuse::PageNotMapped.panic();
        }
        -i64::from(last)
    }
}
