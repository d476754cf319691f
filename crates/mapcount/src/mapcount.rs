//! What all counters of a large folio can do.

use crate::broken::Broken;
use crate::mm_id::MmId;
use crate::order::Order;

/// What a call changed for statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Pages that are mapped now and were not, or minus those that are no longer mapped, as this
    /// counter judges pages. The sum over all calls is what is mapped.
    pub pages: i64,
    /// Unmapping left the folio mapped in part, as far as this counter can tell: memory of it
    /// could be freed if it were split.
    pub in_part: bool,
}

/// What pages of one folio have beside the folio's own state, one after the other.
pub trait Pages<'a, P: 'a>: ExactSizeIterator<Item = &'a P> {}

impl<'a, P: 'a, I: ExactSizeIterator<Item = &'a P>> Pages<'a, P> for I {}

/// The mapcounts of one large folio.
///
/// A *mapping* is a page-table entry of a page, or a PMD entry of the whole folio, which counts
/// once. Callers pass the folio's order with each call, as it is known to whoever holds a folio.
///
/// Any number of threads may call at the same time. A call that removes mappings comes after those
/// that added them. Misuse is a panic which names the broken invariant; the lock of the folio is
/// then free.
pub trait Mapcount: Default + Send + Sync + 'static {
    /// What each page of the folio has beside the folio's own state.
    type Page: Default + Send + Sync + 'static;

    /// Most mappings of a folio that can be counted.
    const MAX_MAPPINGS: u32;

    /// Adds a mapping by `mm` of each of `pages`.
    ///
    /// # Panics
    /// On no page, more than the folio has, or more mappings than can be counted.
    fn map<'a>(&self, order: Order, mm: MmId, pages: impl Pages<'a, Self::Page>) -> Change;

    /// Removes a mapping by `mm` of each of `pages`.
    ///
    /// # Panics
    /// On no page, more than the folio has, or pages that were not mapped, as far as the counter
    /// can tell.
    fn unmap<'a>(&self, order: Order, mm: MmId, pages: impl Pages<'a, Self::Page>) -> Change;

    /// Adds a mapping by `mm` of the whole folio, by one PMD entry.
    ///
    /// # Panics
    /// On more mappings than can be counted.
    fn map_entirely(&self, order: Order, mm: MmId) -> Change;

    /// Removes such a mapping.
    ///
    /// # Panics
    /// When there was none.
    fn unmap_entirely(&self, order: Order, mm: MmId) -> Change;

    /// How many mappings the folio has.
    fn mappings(&self) -> u32;

    /// How many of them are of the whole folio.
    fn entire_mappings(&self) -> u32;

    /// Whether more than one mm may map the folio. `false` is certain.
    fn maybe_shared(&self) -> bool;

    /// How many mappings the folio has, if it is certain that `mm` has all of them and there is
    /// one. A write fault may reuse the page if the folio has no other references than these.
    fn owned_by(&self, mm: MmId) -> Option<u32>;

    /// How often `page` is mapped: exactly where pages have counts, else as often as a page of the
    /// folio is on average.
    fn page_mappings(&self, order: Order, page: &Self::Page) -> u32;

    /// Whether `page`, which is mapped, counts as mapped by one mm alone (USS): where pages have
    /// counts, if it is mapped once, else if the folio is not shared.
    fn counts_as_private(&self, order: Order, page: &Self::Page) -> bool {
        if size_of::<Self::Page>() > 0 {
            self.page_mappings(order, page) == 1
        } else {
            !self.maybe_shared()
        }
    }
}

/// Mappings of a folio, and of those the ones of the whole folio, before and after a change.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    pub old: u32,
    pub new: u32,
    pub old_entire: u32,
    pub new_entire: u32,
}

/// The number of pages of a batch.
#[inline]
pub(crate) fn check_batch(order: Order, pages: usize) -> u32 {
    if pages == 0 {
        Broken::EmptyBatch.panic();
    }
    if pages > order.pages() {
        Broken::PagesBehindEnd { end: pages, pages: order.pages() }.panic();
    }
    pages as u32
}

/// What a change is for statistics where a folio counts as mapped whole once a page of it is.
#[inline]
pub(crate) fn whole(order: Order, counts: Counts) -> Change {
    let pages = order.pages() as i64;
    let seen = |mappings: u32| if mappings > 0 { pages } else { 0 };
    // Fewer mappings than pages, none of them entire: some page has none.
    let few = counts.new > 0 && counts.new_entire == 0 && i64::from(counts.new) < pages;
    Change { pages: seen(counts.new) - seen(counts.old), in_part: counts.new < counts.old && few }
}

/// How often a page is mapped on average, rounded, but once at least if the folio is mapped.
///
/// Mirrors `folio_average_page_mapcount`, 6.18. Test: `tests/statistics.rs`.
pub(crate) fn average(order: Order, mappings: u32, entire: u32) -> u32 {
    let of_pages = mappings.saturating_sub(entire);
    let half = order.pages() as u32 / 2;
    let average = (of_pages + half) / order.pages() as u32 + entire;
    average.max(u32::from(mappings > 0))
}
