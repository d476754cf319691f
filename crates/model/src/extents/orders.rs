//! The orders of the folios that pages of a chunk are in.

use filemap_core::units::Order;

use super::short_list::{ShortList, replace};
use super::span::{Span, WORD, pages_of};

/// Orders by runs of pages, but only where any folio is large.
#[derive(Debug)]
pub struct Orders<const W: usize> {
    /// The offset of the first page of each run, and its order; a run ends where the next begins.
    /// None where no page is in a large folio, else the first begins with the chunk. What absent
    /// pages have is old.
    runs: ShortList<(u16, Order)>,
}

impl<const W: usize> Orders<W> {
    /// No page is in a large folio.
    pub const NONE: Orders<W> = Orders { runs: ShortList::new_const() };

    /// Bytes of memory that they take beside themselves.
    pub fn held_bytes(&self) -> u64 {
        let bytes = self.runs.capacity() * size_of::<(u16, Order)>();
        if self.runs.spilled() { bytes as u64 } else { 0 }
    }

    /// Order of the folio that the page at `offset` is in; meaningless for an absent page.
    #[inline]
    pub fn of(&self, offset: usize) -> Order {
        if self.runs.is_empty() { Order(0) } else { self.runs[self.run_of(offset)].1 }
    }

    /// Order of the folio that the page at `offset` is in, and the page after the run of it.
    pub fn run(&self, offset: usize) -> (Order, usize) {
        if self.runs.is_empty() {
            return (Order(0), pages_of(W) as usize);
        }
        let run = self.run_of(offset);
        (self.runs[run].1, self.end_of(run))
    }

    /// The number of the run that the page at `offset` is in.
    fn run_of(&self, offset: usize) -> usize {
        self.runs.partition_point(|run| usize::from(run.0) <= offset) - 1
    }

    /// The offset after the run of this number.
    fn end_of(&self, run: usize) -> usize {
        self.runs.get(run + 1).map_or(pages_of(W) as usize, |next| next.0.into())
    }

    /// Notes that the pages of `span` are in folios of `order`.
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
        let (first, last) = (self.run_of(span.from), self.run_of(span.end - 1));
        let is_new = usize::from(self.runs[first].0) < span.from;
        // The first run that is covered, and the one after the last.
        let (from, mut to) = (first + usize::from(is_new), last + 1);
        let before = from.checked_sub(1).map(|run| self.runs[run].1);
        let begins = (before != Some(order)).then_some((span.from as u16, order));
        let behind = self.runs[last].1;
        let rest = (span.end < self.end_of(last)).then_some((span.end as u16, behind));
        if rest.is_none() && self.runs.get(to).is_some_and(|next| next.1 == order) {
            to += 1;
        }
        let rest = rest.filter(|rest| rest.1 != order);
        let made: ShortList<_> = begins.into_iter().chain(rest).collect();
        replace(&mut self.runs, from..to, &made);
    }

    /// The pages of `word` that are in large folios, and meaningless bits for absent ones.
    #[inline]
    pub fn large(&self, word: usize) -> u64 {
        if self.runs.is_empty() { 0 } else { self.large_by_runs(word) }
    }

    #[inline(never)]
    fn large_by_runs(&self, word: usize) -> u64 {
        let (from, end) = (word * WORD, (word + 1) * WORD);
        let of_word = self.runs[self.run_of(from)..].iter();
        let of_word = of_word.take_while(|run| usize::from(run.0) < end);
        of_word.fold(0, |large, &(first, order)| {
            // Of its pages and those after them, of which the next run says.
            let pages = u64::MAX << usize::from(first).saturating_sub(from);
            if order > Order(0) { large | pages } else { large & !pages }
        })
    }

    /// Whether the orders of all pages of `word` are this, even those of absent ones.
    pub fn are(&self, word: usize, order: Order) -> bool {
        let (of_run, end) = self.run(word * WORD);
        of_run == order && end >= (word + 1) * WORD
    }

    /// Forgets all of them.
    pub fn forget(&mut self) {
        self.runs.clear();
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::random::Rng;

    use super::super::span::{CHUNK_WORDS, FEW_WORDS};
    use super::*;

    #[test]
    fn runs_of_orders_are_the_orders_of_pages() {
        orders_of_pages::<CHUNK_WORDS>();
        orders_of_pages::<FEW_WORDS>();
    }

    fn orders_of_pages<const W: usize>() {
        for seed in 0..1000 {
            let mut rng = Rng(seed);
            let (mut orders, mut of_pages) =
                (Orders::<W>::NONE, vec![Order(0); pages_of(W) as usize]);
            for _ in 0..rng.below(30) {
                let from = rng.below(pages_of(W)) as usize;
                let end = from + 1 + rng.below(pages_of(W) - from as u64) as usize;
                let order = Order(rng.pick(&[0, 0, 1, 2, 9, 54]));
                orders.set(Span { from, end }, order);
                of_pages[from..end].fill(order);
            }
            for (word, of_word) in of_pages.chunks(WORD).enumerate() {
                let first = word * WORD;
                let mut large = 0;
                for (page, order) in of_word.iter().enumerate() {
                    assert_eq!(orders.of(first + page), *order, "page {page} with seed {seed}");
                    large |= u64::from(*order > Order(0)) << page;
                }
                assert_eq!(orders.large(word), large, "word {word} with seed {seed}");
                let are_same = of_word.iter().all(|order| *order == of_word[0]);
                assert_eq!(orders.are(word, of_word[0]), are_same, "word {word}, seed {seed}");
            }
        }
    }
}
