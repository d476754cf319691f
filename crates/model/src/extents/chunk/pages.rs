//! Adding and removing pages of a chunk.

use filemap_core::units::Order;

use super::{Chunk, Span};

impl<const W: usize> Chunk<W> {
    /// Adds the absent pages of `span` in folios of `order`. Returns the number of words that were
    /// empty.
    // Few callers, millions of calls.
    #[inline(always)]
    pub fn add(&mut self, span: Span, order: Order) -> u64 {
        self.orders.set(span, order);
        let parts = span.by_word();
        self.non_empty |= parts.inner;
        self.full |= parts.inner;
        self.pages += span.pages() as u16;
        let mut were_empty = parts.inner_words() as u64 + self.add_in(parts.first);
        if let Some(last) = parts.last {
            were_empty += self.add_in(last);
        }
        were_empty
    }

    /// Removes the cached pages of `span`. Returns the number of words left empty.
    // Few callers, millions of calls.
    #[inline(always)]
    pub fn remove(&mut self, span: Span) -> u64 {
        self.pages -= span.pages() as u16;
        if self.is_empty() {
            let words = self.non_empty.count_ones();
            (self.non_empty, self.full, self.flagged) = (0, 0, 0);
            self.words.forget();
            return words.into();
        }
        let parts = span.by_word();
        self.non_empty &= !parts.inner;
        self.full &= !parts.inner;
        let mut empty = parts.inner_words() as u64 + self.remove_in(parts.first);
        if let Some(last) = parts.last {
            empty += self.remove_in(last);
        }
        if self.copied == 0 {
            self.flagged &= self.non_empty;
        } else {
            self.clear_words(parts.inner);
        }
        let used = self.live_words();
        self.words.compact(used);
        empty
    }

    /// Splits the large folio of `span` into base pages.
    pub fn split(&mut self, span: Span) {
        self.orders.set(span, Order(0));
    }

    /// Adds absent pages to a word; returns 1 if it was empty.
    #[inline(always)]
    fn add_in(&mut self, (word, pages): (usize, u64)) -> u64 {
        let bit = 1 << word;
        let had_some = self.non_empty >> word & 1;
        self.non_empty |= bit;
        let used = self.live_words();
        let present = self
            .words
            .change_present(word, used, |before| before & had_some.wrapping_neg() | pages);
        self.full |= u64::from(present == u64::MAX) << word;
        1 - had_some
    }

    /// Removes cached pages from a word; returns 1 if it is left empty.
    #[inline(always)]
    fn remove_in(&mut self, (word, pages): (usize, u64)) -> u64 {
        let was_full = self.full >> word & 1;
        self.full &= !(1 << word);
        let used = self.live_words();
        let present = self
            .words
            .change_present(word, used, |before| (before | was_full.wrapping_neg()) & !pages);
        let is_empty = u64::from(present == 0);
        self.non_empty &= !(is_empty << word);
        if self.flagged >> word & 1 == 1 {
            let used = self.live_words();
            self.words.change(word, used, |flags| flags.clear(pages));
        }
        is_empty
    }

    /// Clears the flags of cached pages in `words`.
    fn clear_words(&mut self, words: u64) {
        let mut flagged = self.flagged & words;
        while flagged != 0 {
            self.change_flags(flagged.trailing_zeros() as usize, |flags| flags.clear(u64::MAX));
            flagged &= flagged - 1;
        }
    }
}
