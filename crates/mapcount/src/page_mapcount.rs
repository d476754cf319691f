//! The base: pages have counts, and nobody knows who maps the folio.

use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use crate::atomics::{Atomic, Atomics, Real};
use crate::broken::Broken;
use crate::mapcount::{Change, Mapcount, Pages, check_batch};
use crate::mm_id::MmId;
use crate::order::Order;
use crate::page_counts::PageCounts;

/// A count for each page, the number of mapped pages, and that of all mappings.
///
/// A batch of n pages is n + 1 read-modify-writes, and one more if pages became mapped or are no
/// longer: each page, the number of mappings, and the number of mapped pages.
///
/// Mirrors `__folio_add_rmap` and `__folio_remove_rmap`, 6.12. Test: `tests/atomics_made.rs`.
pub struct PageMapcount<A: Atomics = Real> {
    mappings: A::U32,
    entire: A::U32,
    pages: PageCounts<A>,
}

impl<A: Atomics> Default for PageMapcount<A> {
    fn default() -> Self {
        PageMapcount {
            mappings: A::U32::default(),
            entire: A::U32::default(),
            pages: PageCounts::default(),
        }
    }
}

impl<A: Atomics> PageMapcount<A> {
    #[inline]
    fn more(&self, more: u32) {
        let old = self.mappings.fetch_add(more, Relaxed);
        if old.saturating_add(more) > Self::MAX_MAPPINGS {
            self.mappings.fetch_sub(more, Relaxed);
            Broken::TooManyMappings { most: Self::MAX_MAPPINGS }.panic();
        }
    }

    #[inline]
    fn fewer(&self, fewer: u32) {
        if self.mappings.fetch_sub(fewer, Relaxed) < fewer {
            self.mappings.fetch_add(fewer, Relaxed);
            Broken::NotMapped.panic();
        }
    }
}

impl<A: Atomics> Mapcount for PageMapcount<A> {
    type Page = A::Page;

    const MAX_MAPPINGS: u32 = i32::MAX as u32;

    #[inline]
    fn map<'a>(&self, order: Order, _: MmId, pages: impl Pages<'a, A::Page>) -> Change {
        self.more(check_batch(order, pages.len()));
        self.pages.map(order, pages)
    }

    #[inline]
    fn unmap<'a>(&self, order: Order, _: MmId, pages: impl Pages<'a, A::Page>) -> Change {
        self.fewer(check_batch(order, pages.len()));
        self.pages.unmap(order, pages)
    }

    fn map_entirely(&self, order: Order, _: MmId) -> Change {
        self.more(1);
        if self.entire.fetch_add(1, Relaxed) > 0 {
            return Change::default();
        }
        self.pages.map_entirely(order)
    }

    fn unmap_entirely(&self, order: Order, _: MmId) -> Change {
        self.fewer(1);
        match self.entire.fetch_sub(1, AcqRel) {
            0 => {
                self.entire.fetch_add(1, Relaxed);
                Broken::NotMappedEntirely.panic()
            }
            1 => self.pages.unmap_entirely(order),
            _ => Change::default(),
        }
    }

    #[inline]
    fn mappings(&self) -> u32 {
        self.mappings.load(Relaxed)
    }

    fn entire_mappings(&self) -> u32 {
        self.entire.load(Relaxed)
    }

    /// A folio with one mapping has one owner. More may be of one mm or of several.
    fn maybe_shared(&self) -> bool {
        self.mappings() > 1
    }

    /// Nobody knows whose the mappings of a large folio are, so none of its pages is reused.
    #[inline]
    fn owned_by(&self, _: MmId) -> Option<u32> {
        None
    }

    fn page_mappings(&self, _: Order, page: &A::Page) -> u32 {
        page.load(Relaxed) + self.entire_mappings()
    }
}
