//! Counts of pages, and two owners beside them.

use std::sync::atomic::Ordering::Relaxed;

use crate::atomics::{Atomic, Atomics, Real};
use crate::mapcount::{Change, Mapcount, Pages, check_batch};
use crate::mm_id::MmId;
use crate::order::Order;
use crate::owners::{MAX_MAPPINGS, OwnerRules, Owners};
use crate::page_counts::PageCounts;
use crate::slots::Published;

/// A count for each page, the number of mapped pages, and two mms with their mappings.
///
/// As many read-modify-writes as without owners: the one that takes the lock stands for the one
/// that changed the number of mappings. The lock is given back before pages are counted, so it is
/// held for the same time whatever the size of the batch.
///
/// Mirrors `__folio_add_rmap` and `__folio_remove_rmap`, 6.18. Test: `tests/atomics_made.rs`.
pub struct MmOwner<A: Atomics = Real, R = Published> {
    owners: Owners<A, R>,
    pages: PageCounts<A>,
}

impl<A: Atomics, R> Default for MmOwner<A, R> {
    fn default() -> Self {
        MmOwner { owners: Owners::default(), pages: PageCounts::default() }
    }
}

impl<A: Atomics, R: OwnerRules> Mapcount for MmOwner<A, R> {
    type Page = A::Page;

    const MAX_MAPPINGS: u32 = MAX_MAPPINGS;

    #[inline]
    fn map<'a>(&self, order: Order, mm: MmId, pages: impl Pages<'a, A::Page>) -> Change {
        self.owners.map(mm, check_batch(order, pages.len()), 0);
        self.pages.map(order, pages)
    }

    #[inline]
    fn unmap<'a>(&self, order: Order, mm: MmId, pages: impl Pages<'a, A::Page>) -> Change {
        self.owners.unmap(mm, check_batch(order, pages.len()), 0);
        self.pages.unmap(order, pages)
    }

    fn map_entirely(&self, order: Order, mm: MmId) -> Change {
        let counts = self.owners.map(mm, 1, 1);
        if counts.old_entire > 0 { Change::default() } else { self.pages.map_entirely(order) }
    }

    fn unmap_entirely(&self, order: Order, mm: MmId) -> Change {
        let counts = self.owners.unmap(mm, 1, 1);
        if counts.new_entire > 0 { Change::default() } else { self.pages.unmap_entirely(order) }
    }

    #[inline]
    fn mappings(&self) -> u32 {
        self.owners.mappings()
    }

    fn entire_mappings(&self) -> u32 {
        self.owners.entire()
    }

    #[inline]
    fn maybe_shared(&self) -> bool {
        self.owners.maybe_shared()
    }

    #[inline]
    fn owned_by(&self, mm: MmId) -> Option<u32> {
        self.owners.owned_by(mm)
    }

    fn page_mappings(&self, _: Order, page: &A::Page) -> u32 {
        page.load(Relaxed) + self.entire_mappings()
    }
}
