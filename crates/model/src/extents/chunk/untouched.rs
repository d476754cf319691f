//! Finding accessed and unaccessed pages of a chunk.

use super::super::lists::low_bits;
use super::super::span::WORD;
use super::{Chunk, Flags, Span};

/// A prefix of pages that were not accessed.
pub struct UntouchedPages {
    /// The page after the prefix.
    pub end: usize,
    /// The accessed pages that follow, within one word; 0 if nothing was accessed.
    pub next_young: u64,
    /// Whether no page of the prefix has the workingset flag.
    pub is_plain: bool,
}

impl<const W: usize> Chunk<W> {
    /// The longest prefix of `span` whose entries were not accessed. `recency` gives, per word, the
    /// pages whose accessed bits count.
    // A single caller, which evicts spans by the million.
    #[inline(always)]
    pub fn untouched_prefix(&self, span: Span, recency: impl Fn(usize) -> u64) -> UntouchedPages {
        let mut notable = self.flagged & self.notable & span.words();
        let mut workingset = 0;
        while notable != 0 {
            let word = notable.trailing_zeros() as usize;
            let flags = |flags: &Flags| (flags.accessed(u64::MAX), flags.workingset);
            let (accessed, of_workingset) = self.words.get(word, flags);
            let mask = span.mask(word);
            let young = accessed & mask & recency(word);
            if young != 0 {
                let bit = young.trailing_zeros();
                workingset |= of_workingset & mask & low_bits(bit);
                let run = low_bits((young >> bit).trailing_ones()) << bit;
                let (end, is_plain) = (word * WORD + bit as usize, workingset == 0);
                return UntouchedPages { end, next_young: run, is_plain };
            }
            workingset |= of_workingset & mask;
            notable &= notable - 1;
        }
        UntouchedPages { end: span.end, next_young: 0, is_plain: workingset == 0 }
    }

    /// The end of the prefix of `span` with equal workingset flags, and the flag.
    pub fn workingset_run(&self, span: Span) -> (usize, bool) {
        let mut notable = self.flagged & self.notable & span.words();
        while notable != 0 {
            let word = notable.trailing_zeros() as usize;
            let workingset = self.words.get(word, |flags| flags.workingset);
            let pages = workingset & span.mask(word);
            if pages != 0 {
                let first = word * WORD + pages.trailing_zeros() as usize;
                let end = first + (pages >> pages.trailing_zeros()).trailing_ones() as usize;
                return if first > span.from { (first, false) } else { (end, true) };
            }
            notable &= notable - 1;
        }
        (span.end, false)
    }

    /// The end of the whole folios at the start of `span` that fill fully cached words without
    /// flags; the start of `span` if there are none.
    pub fn plain_words_end(&self, span: Span) -> usize {
        if !span.from.is_multiple_of(WORD) || span.pages() < WORD {
            return span.from;
        }
        let (order, end) = self.orders.run(span.from);
        let unit = WORD.max(order.pages() as usize);
        if !span.from.is_multiple_of(unit) {
            return span.from;
        }
        let first = span.from / WORD;
        let plain = ((self.full & !self.flagged) >> first).trailing_ones() as usize;
        end.min(span.end).min((first + plain) * WORD) / unit * unit
    }

    /// The end of the leading words of `span` whose pages in it are all cached, referenced and
    /// active.
    pub fn active_end(&self, span: Span) -> usize {
        let mut word = span.from / WORD;
        while word * WORD < span.end && self.flagged >> word & 1 == 1 {
            let used = self.words.get(word, |flags| flags.referenced & flags.active);
            if span.mask(word) & !(used & self.present(word)) != 0 {
                break;
            }
            let alike = ((self.full & self.flagged) >> word).trailing_ones() as usize;
            word += self.words.uniform_words(word).min(alike).max(1);
        }
        (word * WORD).clamp(span.from, span.end)
    }

    /// Marks the pages of `span`, found by [`Chunk::plain_words_end`], as referenced.
    pub fn reference_plain_words(&mut self, span: Span) {
        let words = span.words();
        self.flagged |= words;
        self.notable &= !words;
        let flags = Flags { referenced: u64::MAX, ..Flags::default() };
        let used = self.live_words();
        self.words.fill(span.from / WORD..span.end / WORD, flags, used);
    }
}
