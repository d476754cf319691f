//! Folio orders of the pages of a chunk.

use filemap_core::units::Order;

use super::span::{ShortList, replace};
use super::span::{Span, WORD, chunk_pages};

/// Orders as runs of pages; empty unless some folio is large.
#[derive(Debug)]
pub struct FolioOrders<const W: usize> {
    /// First page and order of each run; a run ends where the next begins. Empty if no page is in a
    /// large folio, else the first run starts at page 0. Orders of absent pages are stale.
    runs: ShortList<(u16, Order)>,
}

impl<const W: usize> FolioOrders<W> {
    /// No large folios.
    pub const NONE: FolioOrders<W> = FolioOrders { runs: ShortList::new_const() };

    /// Heap memory used, in bytes.
    pub fn held_bytes(&self) -> u64 {
        let bytes = self.runs.capacity() * size_of::<(u16, Order)>();
        if self.runs.spilled() { bytes as u64 } else { 0 }
    }

    /// Order of the folio of the page at `offset`; meaningless for an absent page.
    #[inline]
    pub fn order(&self, offset: usize) -> Order {
        if self.runs.is_empty() { Order(0) } else { self.runs[self.run_index(offset)].1 }
    }

    /// Order of the folio of the page at `offset`, and the end of its run.
    pub fn run(&self, offset: usize) -> (Order, usize) {
        if self.runs.is_empty() {
            return (Order(0), chunk_pages(W) as usize);
        }
        let run = self.run_index(offset);
        (self.runs[run].1, self.run_end_index(run))
    }

    /// Index of the run of the page at `offset`.
    fn run_index(&self, offset: usize) -> usize {
        self.runs.partition_point(|run| usize::from(run.0) <= offset) - 1
    }

    /// End of the run with this index.
    fn run_end_index(&self, run: usize) -> usize {
        self.runs.get(run + 1).map_or(chunk_pages(W) as usize, |next| next.0.into())
    }

    /// Sets the order of the pages of `span`.
    #[inline]
    pub fn set(&mut self, span: Span, order: Order) {
        if order > Order(0) || !self.runs.is_empty() {
            self.set_run(span, order);
        }
    }

    #[inline(never)]
    fn set_run(&mut self, span: Span, order: Order) {
        if self.runs.is_empty() {
            self.runs.push((0, Order(0)));
        }
        let (first, last) = (self.run_index(span.from), self.run_index(span.end - 1));
        let is_new = usize::from(self.runs[first].0) < span.from;
        // Range of runs to replace.
        let (from, mut to) = (first + usize::from(is_new), last + 1);
        let before = from.checked_sub(1).map(|run| self.runs[run].1);
        let begins = (before != Some(order)).then_some((span.from as u16, order));
        let last_order = self.runs[last].1;
        let rest = (span.end < self.run_end_index(last)).then_some((span.end as u16, last_order));
        if rest.is_none() && self.runs.get(to).is_some_and(|next| next.1 == order) {
            to += 1;
        }
        let rest = rest.filter(|rest| rest.1 != order);
        let made: ShortList<_> = begins.into_iter().chain(rest).collect();
        replace(&mut self.runs, from..to, &made);
    }

    /// The pages of `word` in large folios; bits of absent pages are meaningless.
    #[inline]
    pub fn large(&self, word: usize) -> u64 {
        if self.runs.is_empty() { 0 } else { self.large_by_runs(word) }
    }

    #[inline(never)]
    fn large_by_runs(&self, word: usize) -> u64 {
        let (from, end) = (word * WORD, (word + 1) * WORD);
        let of_word = self.runs[self.run_index(from)..].iter();
        let of_word = of_word.take_while(|run| usize::from(run.0) < end);
        of_word.fold(0, |large, &(first, order)| {
            // Applies to all following pages; the next run overrides.
            let pages = u64::MAX << usize::from(first).saturating_sub(from);
            if order > Order(0) { large | pages } else { large & !pages }
        })
    }

    /// Whether all pages of `word`, including absent ones, have this order.
    pub fn is_uniform(&self, word: usize, order: Order) -> bool {
        let (of_run, end) = self.run(word * WORD);
        of_run == order && end >= (word + 1) * WORD
    }

    /// Forgets all orders.
    pub fn forget(&mut self) {
        self.runs.clear();
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::random::Rng;

    use super::super::span::{CHUNK_WORDS, TINY_CHUNK_WORDS};
    use super::*;

    #[test]
    fn runs_of_orders_are_the_orders_of_pages() {
        orders_of_pages::<CHUNK_WORDS>();
        orders_of_pages::<TINY_CHUNK_WORDS>();
    }

    fn orders_of_pages<const W: usize>() {
        for seed in 0..1000 {
            let mut rng = Rng(seed);
            let (mut orders, mut of_pages) =
                (FolioOrders::<W>::NONE, vec![Order(0); chunk_pages(W) as usize]);
            for _ in 0..rng.below(30) {
                let from = rng.below(chunk_pages(W)) as usize;
                let end = from + 1 + rng.below(chunk_pages(W) - from as u64) as usize;
                let order = Order(rng.pick(&[0, 0, 1, 2, 9, 54]));
                orders.set(Span { from, end }, order);
                of_pages[from..end].fill(order);
            }
            for (word, of_word) in of_pages.chunks(WORD).enumerate() {
                let first = word * WORD;
                let mut large = 0;
                for (page, order) in of_word.iter().enumerate() {
                    assert_eq!(orders.order(first + page), *order, "page {page} with seed {seed}");
                    large |= u64::from(*order > Order(0)) << page;
                }
                assert_eq!(orders.large(word), large, "word {word} with seed {seed}");
                let are_same = of_word.iter().all(|order| *order == of_word[0]);
                assert_eq!(
                    orders.is_uniform(word, of_word[0]),
                    are_same,
                    "word {word}, seed {seed}"
                );
            }
        }
    }
}
