//! The orders of the folios that pages of a chunk are in.

use filemap_core::cache::WORD_PAGES;
use filemap_core::units::Order;

use super::span::{CHUNK_PAGES, Span};

/// One order a page, but only where any folio is large.
#[derive(Debug, Default)]
pub struct Orders {
    /// Words with a page whose order may not be 0. What stands at the pages of others is old.
    large: u64,
    orders: Option<Box<[u8; CHUNK_PAGES as usize]>>,
}

const WORD: usize = WORD_PAGES as usize;

impl Orders {
    /// No page is in a large folio.
    pub const NONE: Orders = Orders { large: 0, orders: None };

    /// Whether it takes memory.
    pub fn are_kept(&self) -> bool {
        self.orders.is_some()
    }

    /// Order of the folio that the page at `offset` is in; meaningless for an absent page.
    pub fn of(&self, offset: usize) -> Order {
        Order(self.kept(offset / WORD).map_or(0, |orders| orders[offset % WORD]))
    }

    /// Notes that the pages of `span` are in folios of `order`.
    pub fn set(&mut self, span: Span, order: Order) {
        if order == Order(0) && self.large == 0 {
            return;
        }
        let mut words = span.words();
        while words != 0 {
            let word = words.trailing_zeros() as usize;
            self.set_in(word, span.mask(word), order);
            words &= words - 1;
        }
    }

    fn set_in(&mut self, word: usize, pages: u64, order: Order) {
        let bit = 1 << word;
        let is_kept = self.large & bit != 0;
        if order == Order(0) && (pages == u64::MAX || !is_kept) {
            self.large &= !bit;
            return;
        }
        let orders = self.orders.get_or_insert_with(|| Box::new([0; CHUNK_PAGES as usize]));
        let orders = &mut orders[word * WORD..(word + 1) * WORD];
        if !is_kept {
            orders.fill(0);
        }
        let first = pages.trailing_zeros() as usize;
        orders[first..first + pages.count_ones() as usize].fill(order.0);
        self.large |= bit;
    }

    /// The pages of `word` that are in large folios, and meaningless bits for absent ones.
    pub fn large(&self, word: usize) -> u64 {
        let Some(orders) = self.kept(word) else {
            return 0;
        };
        orders.iter().rev().fold(0, |mask, &order| mask << 1 | u64::from(order > 0))
    }

    /// Forgets all of them.
    pub fn forget(&mut self) {
        *self = Orders::default();
    }

    fn kept(&self, word: usize) -> Option<&[u8]> {
        let is_kept = self.large >> word & 1 == 1;
        let orders = self.orders.as_ref().filter(|_| is_kept)?;
        Some(&orders[word * WORD..(word + 1) * WORD])
    }
}
