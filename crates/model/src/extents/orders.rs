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
        // Eight at a time: an order is below 128, so adding 127 shows in the highest bit of its
        // byte whether it is 0; the product has these bits side by side in its highest byte.
        let eight = |orders: &[u8; 8]| {
            let large = (u64::from_le_bytes(*orders) + 0x7f7f_7f7f_7f7f_7f7f) >> 7;
            (large & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56
        };
        let (eights, _) = orders.as_chunks::<8>();
        eights.iter().rev().fold(0, |mask, orders| mask << 8 | eight(orders))
    }

    /// Whether the orders of all pages of `word` are this, even those of absent ones.
    pub fn are(&self, word: usize, order: Order) -> bool {
        let Some(orders) = self.kept(word) else {
            return order == Order(0);
        };
        let (eights, _) = orders.as_chunks::<8>();
        eights.iter().all(|eight| *eight == [order.0; 8])
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

#[cfg(test)]
mod tests {
    use filemap_job::random::Rng;

    use super::*;

    #[test]
    fn large_pages_are_those_whose_order_is_not_0() {
        for seed in 0..1000 {
            let mut rng = Rng(seed);
            let mut orders = Orders::NONE;
            for _ in 0..rng.below(30) {
                let from = rng.below(CHUNK_PAGES) as usize;
                let end = from + 1 + rng.below(CHUNK_PAGES - from as u64) as usize;
                orders.set(Span { from, end }, Order(rng.pick(&[0, 0, 1, 2, 9, 54])));
            }
            for word in 0..(CHUNK_PAGES / WORD_PAGES) as usize {
                let one_by_one = (0..WORD).fold(0, |mask, page| {
                    mask | u64::from(orders.of(word * WORD + page) > Order(0)) << page
                });
                assert_eq!(orders.large(word), one_by_one, "word {word} with seed {seed}");
            }
        }
    }
}
