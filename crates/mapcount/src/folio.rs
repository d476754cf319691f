//! A large folio with its counters: where batches are ranges of pages.

use std::ops::Range;

use crate::broken::Broken;
use crate::error::Error;
use crate::mapcount::{Change, Mapcount};
use crate::mm_id::MmId;
use crate::order::Order;

/// The counters of one folio of order 1 or above, with what its pages have.
pub struct Folio<C: Mapcount> {
    order: Order,
    counts: C,
    pages: Box<[C::Page]>,
}

impl<C: Mapcount> Folio<C> {
    /// A folio of which nothing is mapped.
    ///
    /// # Errors
    /// When `order` is 0: one page needs one count, and nobody asks who owns it.
    pub fn new(order: Order) -> Result<Folio<C>, Error> {
        if order == Order::SINGLE {
            return Err(Error::NotLarge);
        }
        let pages = (0..order.pages()).map(|_| C::Page::default()).collect();
        Ok(Folio { order, counts: C::default(), pages })
    }

    /// Adds mappings by `mm` of `pages`.
    ///
    /// # Panics
    /// As [`Mapcount::map`].
    pub fn map(&self, mm: MmId, pages: Range<usize>) -> Change {
        self.counts.map(self.order, mm, self.pages(pages).iter())
    }

    /// Removes mappings by `mm` of `pages`.
    ///
    /// # Panics
    /// As [`Mapcount::unmap`].
    pub fn unmap(&self, mm: MmId, pages: Range<usize>) -> Change {
        self.counts.unmap(self.order, mm, self.pages(pages).iter())
    }

    /// Adds a mapping by `mm` of the whole folio.
    ///
    /// # Panics
    /// As [`Mapcount::map_entirely`].
    pub fn map_entirely(&self, mm: MmId) -> Change {
        self.counts.map_entirely(self.order, mm)
    }

    /// Removes a mapping by `mm` of the whole folio.
    ///
    /// # Panics
    /// As [`Mapcount::unmap_entirely`].
    pub fn unmap_entirely(&self, mm: MmId) -> Change {
        self.counts.unmap_entirely(self.order, mm)
    }

    /// How often the page is mapped, as [`Mapcount::page_mappings`].
    pub fn page_mappings(&self, page: usize) -> u32 {
        self.counts.page_mappings(self.order, &self.pages(page..page + 1)[0])
    }

    /// Whether the page counts as mapped by one mm alone, as [`Mapcount::counts_as_private`].
    pub fn counts_as_private(&self, page: usize) -> bool {
        self.counts.counts_as_private(self.order, &self.pages(page..page + 1)[0])
    }

    /// The counters.
    pub fn counts(&self) -> &C {
        &self.counts
    }

    /// The size.
    pub fn order(&self) -> Order {
        self.order
    }

    fn pages(&self, pages: Range<usize>) -> &[C::Page] {
        let all = self.pages.len();
        let end = pages.end;
        self.pages.get(pages).unwrap_or_else(|| Broken::PagesBehindEnd { end, pages: all }.panic())
    }
}
