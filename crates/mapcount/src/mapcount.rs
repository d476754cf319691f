//! The interface of all counting schemes.

use crate::error::Misuse;
use crate::folio::Order;
use crate::mm_id::MmId;

/// Per-page counters of a batch of pages of one folio.
pub trait Pages<'a, P: 'a>: ExactSizeIterator<Item = &'a P> {}

impl<'a, P: 'a, I: ExactSizeIterator<Item = &'a P>> Pages<'a, P> for I {}

/// The mapcounts of one large folio.
///
/// A *mapping* is a page-table entry of a page. Callers pass the folio's order with each call,
/// since whoever holds a folio knows it.
///
/// Any number of threads may call at the same time, but a mapping is removed only after it was
/// added. Misuse panics with the broken invariant and leaves the folio unlocked.
pub trait Mapcount: Default + Send + Sync + 'static {
    /// The counter of each page.
    type Page: Default + Send + Sync + 'static;

    /// Maximum number of mappings of a folio.
    const MAX_MAPPINGS: u32;

    /// Adds a mapping by `mm` of each of `pages`. Returns how many pages became mapped, as this
    /// scheme judges pages; the sum over all calls is the number of mapped pages.
    ///
    /// # Panics
    /// On an empty batch, more pages than the folio has, or more than [`Self::MAX_MAPPINGS`].
    fn map<'a>(&self, order: Order, mm: MmId, pages: impl Pages<'a, Self::Page>) -> i64;

    /// Removes a mapping by `mm` of each of `pages`. Returns minus the number of pages that are no
    /// longer mapped.
    ///
    /// # Panics
    /// On an empty batch, more pages than the folio has, or unmapped pages, as far as the scheme
    /// can tell.
    fn unmap<'a>(&self, order: Order, mm: MmId, pages: impl Pages<'a, Self::Page>) -> i64;

    /// The number of mappings of the folio.
    fn mappings(&self) -> u32;

    /// Whether more than one mm may map the folio. `false` is certain.
    fn maybe_shared(&self) -> bool;

    /// The number of mappings, if `mm` is known to have all of them and there is one. A write fault
    /// may reuse the page if the folio has no other references.
    fn owned_by(&self, mm: MmId) -> Option<u32>;

    /// How often a page is mapped; `None` if the scheme does not count pages.
    fn page_mappings(&self, page: &Self::Page) -> Option<u32>;
}

/// Mappings of a folio before and after a change.
#[derive(Clone, Copy)]
pub(crate) struct MappingCounts {
    pub old: u32,
    pub new: u32,
}

/// The number of pages of a batch.
#[inline]
pub(crate) fn check_batch(order: Order, pages: usize) -> u32 {
    if pages == 0 {
        Misuse::EmptyBatch.panic();
    }
    if pages > order.pages() {
        Misuse::BatchTooLong { end: pages, pages: order.pages() }.panic();
    }
    pages as u32
}

/// The change in mapped pages where a folio counts as mapped whole as soon as one page is.
#[inline]
pub(crate) fn whole_folio(order: Order, counts: MappingCounts) -> i64 {
    let pages = |mappings: u32| if mappings > 0 { order.pages() as i64 } else { 0 };
    pages(counts.new) - pages(counts.old)
}
