//! A large folio with its counters.

use std::ops::Range;

use crate::error::{Error, Misuse};
use crate::mapcount::Mapcount;
use crate::mm_id::MmId;

/// The size of a folio: 2^order pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order(u8);

impl Order {
    /// One page.
    pub const SINGLE: Order = Order(0);
    /// The PMD order on x86-64: 2 MiB in pages of 4 KiB.
    pub const PMD: Order = Order(9);
    /// The largest order of an anonymous folio: 512 MiB in pages of 64 KiB, the PMD order on arm64.
    pub const MAX: Order = Order(13);

    /// The order with this number.
    ///
    /// # Errors
    /// When it is larger than [`Order::MAX`].
    pub const fn new(order: u32) -> Result<Order, Error> {
        if order <= Order::MAX.0 as u32 { Ok(Order(order as u8)) } else { Err(Error::Order(order)) }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0 as u32
    }

    /// Pages of a folio of this order.
    pub const fn pages(self) -> usize {
        1 << self.0
    }
}

/// A folio of order 1 or above, with its counters and the counters of its pages. Batches are ranges
/// of pages.
pub struct Folio<C: Mapcount> {
    order: Order,
    counts: C,
    pages: Box<[C::Page]>,
}

impl<C: Mapcount> Folio<C> {
    /// An unmapped folio.
    ///
    /// # Errors
    /// When `order` is 0: a single page has one count and no owners.
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
    pub fn map(&self, mm: MmId, pages: Range<usize>) -> i64 {
        self.counts.map(self.order, mm, self.pages(pages).iter())
    }

    /// Removes mappings by `mm` of `pages`.
    ///
    /// # Panics
    /// As [`Mapcount::unmap`].
    pub fn unmap(&self, mm: MmId, pages: Range<usize>) -> i64 {
        self.counts.unmap(self.order, mm, self.pages(pages).iter())
    }

    /// How often the page is mapped, where pages have counts.
    pub fn page_mappings(&self, page: usize) -> Option<u32> {
        self.counts.page_mappings(&self.pages(page..page + 1)[0])
    }

    /// The counters of the folio.
    pub fn counts(&self) -> &C {
        &self.counts
    }

    /// The size.
    pub fn order(&self) -> Order {
        self.order
    }

    fn pages(&self, pages: Range<usize>) -> &[C::Page] {
        let (end, folio_pages) = (pages.end, self.pages.len());
        let pages = self.pages.get(pages);
        pages.unwrap_or_else(|| Misuse::BatchTooLong { end, pages: folio_pages }.panic())
    }
}
