//! Pages of a chunk that were used, and those that were not.

use super::super::lists::bits;
use super::super::span::WORD;
use super::{Chunk, Flags, Span};

/// Pages that nobody has used.
pub struct Unused {
    /// The page after the last of them.
    pub end: usize,
    /// The pages that were used from there on, in the word that it is in: none where all are
    /// unused.
    pub young: u64,
    /// Whether none of the unused ones has the workingset flag.
    pub is_plain: bool,
}

impl<const W: usize> Chunk<W> {
    /// The pages that `span` begins with whose entries were not accessed, where that is `believed`:
    /// by word.
    // One call, in what evicts spans by the million.
    #[inline(always)]
    pub fn unused(&self, span: Span, believed: impl Fn(usize) -> u64) -> Unused {
        let mut notable = self.flagged & self.notable & span.words();
        let mut workingset = 0;
        while notable != 0 {
            let word = notable.trailing_zeros() as usize;
            let flags = |flags: &Flags| (flags.accessed(u64::MAX), flags.workingset);
            let (accessed, of_workingset) = self.words.get(word, flags);
            let mask = span.mask(word);
            let young = accessed & mask & believed(word);
            if young != 0 {
                let bit = young.trailing_zeros();
                workingset |= of_workingset & mask & bits(bit);
                let run = bits((young >> bit).trailing_ones()) << bit;
                let (end, is_plain) = (word * WORD + bit as usize, workingset == 0);
                return Unused { end, young: run, is_plain };
            }
            workingset |= of_workingset & mask;
            notable &= notable - 1;
        }
        Unused { end: span.end, young: 0, is_plain: workingset == 0 }
    }

    /// The end of the pages of `span` that have the workingset flag as its first page has it, and
    /// whether that has it.
    pub fn workingset_until(&self, span: Span) -> (usize, bool) {
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

    /// The end of the whole folios at the beginning of `span` that fill words all pages of which
    /// are cached and have no flag; at most its beginning where it begins with none.
    pub fn untouched_end(&self, span: Span) -> usize {
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

    /// The end of the words of `span`, from its beginning on, whose pages in it are all cached,
    /// referenced and active.
    pub fn used_end(&self, span: Span) -> usize {
        let mut word = span.from / WORD;
        while word * WORD < span.end && self.flagged >> word & 1 == 1 {
            let used = self.words.get(word, |flags| flags.referenced & flags.active);
            if span.mask(word) & !(used & self.present(word)) != 0 {
                break;
            }
            let alike = ((self.full & self.flagged) >> word).trailing_ones() as usize;
            word += self.words.alike(word).min(alike).max(1);
        }
        (word * WORD).clamp(span.from, span.end)
    }

    /// The pages of `span`, which [`Chunk::untouched_end`] ends, are referenced from now on.
    pub fn reference_untouched(&mut self, span: Span) {
        let words = span.words();
        self.flagged |= words;
        self.notable &= !words;
        let flags = Flags { referenced: u64::MAX, ..Flags::default() };
        let used = self.counted();
        self.words.fill(span.from / WORD..span.end / WORD, flags, used);
    }
}
