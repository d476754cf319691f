//! Two owners, and no counts of pages.

use crate::atomics::{Atomics, Real};
use crate::mapcount::{Change, Mapcount, Pages, average, check_batch, whole};
use crate::mm_id::MmId;
use crate::order::Order;
use crate::owners::{MAX_MAPPINGS, OwnerRules, Owners};
use crate::slots::Published;

/// Two mms with their mappings, the number of all mappings, and that of the whole folio.
///
/// A batch is one read-modify-write, however many pages it has. A folio of which a page is mapped
/// counts as mapped whole, and a page as mapped as often as the folio's pages are on average.
///
/// Mirrors `__folio_add_rmap` and `__folio_remove_rmap`, 6.18, with CONFIG_NO_PAGE_MAPCOUNT.
/// Test: `tests/atomics_made.rs`.
pub struct NoPageMapcount<A: Atomics = Real, R = Published> {
    owners: Owners<A, R>,
}

impl<A: Atomics, R> Default for NoPageMapcount<A, R> {
    fn default() -> Self {
        NoPageMapcount { owners: Owners::default() }
    }
}

impl<A: Atomics, R: OwnerRules> Mapcount for NoPageMapcount<A, R> {
    type Page = ();

    const MAX_MAPPINGS: u32 = MAX_MAPPINGS;

    #[inline]
    fn map<'a>(&self, order: Order, mm: MmId, pages: impl Pages<'a, ()>) -> Change {
        let counts = self.owners.map(mm, check_batch(order, pages.len()), 0);
        whole(order, counts)
    }

    #[inline]
    fn unmap<'a>(&self, order: Order, mm: MmId, pages: impl Pages<'a, ()>) -> Change {
        let counts = self.owners.unmap(mm, check_batch(order, pages.len()), 0);
        whole(order, counts)
    }

    fn map_entirely(&self, order: Order, mm: MmId) -> Change {
        whole(order, self.owners.map(mm, 1, 1))
    }

    fn unmap_entirely(&self, order: Order, mm: MmId) -> Change {
        whole(order, self.owners.unmap(mm, 1, 1))
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

    fn page_mappings(&self, order: Order, (): &()) -> u32 {
        average(order, self.mappings(), self.entire_mappings())
    }
}
