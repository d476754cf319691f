//! Two owner slots, with counts of pages and without.

use std::sync::atomic::Ordering::Relaxed;

use crate::atomics::{Atomic, Atomics, StdAtomics};
use crate::folio::Order;
use crate::mapcount::{Mapcount, Pages, check_batch, whole_folio};
use crate::mm_id::MmId;
use crate::owners::{MAX_MAPPINGS, OwnerRules, Owners};
use crate::page_mapcount::PageCounts;
use crate::slots::PublishedRules;

/// Owners and the number of mappings, and a count for each page.
///
/// As many read-modify-writes as without owners: the one that takes the lock replaces the one on
/// the number of mappings. The lock is released before pages are counted, so that it is held
/// equally long for batches of any size.
///
/// Mirrors `__folio_add_rmap` and `__folio_remove_rmap`, 6.18. Test: `tests/atomic_operations.rs`.
pub struct MmOwner<A: Atomics = StdAtomics, R = PublishedRules> {
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
    fn map<'a>(&self, order: Order, mm: MmId, pages: impl Pages<'a, A::Page>) -> i64 {
        self.owners.map(mm, check_batch(order, pages.len()));
        self.pages.map(pages)
    }

    #[inline]
    fn unmap<'a>(&self, order: Order, mm: MmId, pages: impl Pages<'a, A::Page>) -> i64 {
        self.owners.unmap(mm, check_batch(order, pages.len()));
        self.pages.unmap(pages)
    }

    #[inline]
    fn mappings(&self) -> u32 {
        self.owners.mappings()
    }

    #[inline]
    fn maybe_shared(&self) -> bool {
        self.owners.maybe_shared()
    }

    #[inline]
    fn owned_by(&self, mm: MmId) -> Option<u32> {
        self.owners.owned_by(mm)
    }

    fn page_mappings(&self, page: &A::Page) -> Option<u32> {
        Some(page.load(Relaxed))
    }
}

/// Owners and the number of mappings, without counts of pages.
///
/// A batch is one read-modify-write, however many pages it has. A folio counts as mapped whole as
/// soon as one of its pages is.
///
/// Mirrors `__folio_add_rmap` and `__folio_remove_rmap`, 6.18, with CONFIG_NO_PAGE_MAPCOUNT.
/// Test: `tests/atomic_operations.rs`.
pub struct NoPageMapcount<A: Atomics = StdAtomics, R = PublishedRules> {
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
    fn map<'a>(&self, order: Order, mm: MmId, pages: impl Pages<'a, ()>) -> i64 {
        whole_folio(order, self.owners.map(mm, check_batch(order, pages.len())))
    }

    #[inline]
    fn unmap<'a>(&self, order: Order, mm: MmId, pages: impl Pages<'a, ()>) -> i64 {
        whole_folio(order, self.owners.unmap(mm, check_batch(order, pages.len())))
    }

    #[inline]
    fn mappings(&self) -> u32 {
        self.owners.mappings()
    }

    #[inline]
    fn maybe_shared(&self) -> bool {
        self.owners.maybe_shared()
    }

    #[inline]
    fn owned_by(&self, mm: MmId) -> Option<u32> {
        self.owners.owned_by(mm)
    }

    fn page_mappings(&self, (): &()) -> Option<u32> {
        None
    }
}
