//! Pages that left the cache on demand, and return to the active list.

use std::collections::BTreeMap;

use filemap_core::cache::{WORD_PAGES, by_word, word_mask, words};
use filemap_core::units::PageIndex;

/// By words of the row.
#[derive(Debug, Default)]
pub struct PagedOut(BTreeMap<u64, Pages>);

/// The pages of a word, one bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Pages {
    left: u64,
    /// Those of them that had the workingset flag.
    workingset: u64,
}

impl PagedOut {
    /// Bytes of memory that they take.
    pub fn held_bytes(&self) -> u64 {
        (self.0.len() * size_of::<(u64, Pages)>()) as u64
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pages `from..end` left, with the workingset flag or without.
    pub fn add(&mut self, from: u64, end: u64, workingset: bool) {
        for (word, mask) in by_word(PageIndex(from), PageIndex(end)) {
            let pages = self.0.entry(word).or_default();
            pages.left |= mask;
            pages.workingset &= !mask;
            pages.workingset |= if workingset { mask } else { 0 };
        }
    }

    /// The first page of `from..end` that left.
    pub fn next(&self, from: u64, end: u64) -> Option<u64> {
        self.of_range(from, end)
            .next()
            .map(|(word, pages)| word * WORD_PAGES + u64::from(pages.left.trailing_zeros()))
    }

    /// The last page of `from..end` that left, and whether it had the workingset flag.
    pub fn last(&self, from: u64, end: u64) -> Option<(u64, bool)> {
        self.of_range(from, end).next_back().map(|(word, pages)| {
            let bit = pages.left.ilog2();
            (word * WORD_PAGES + u64::from(bit), pages.workingset >> bit & 1 == 1)
        })
    }

    /// Takes the pages `from..end` out.
    pub fn take(&mut self, from: u64, end: u64) {
        let within: Vec<(u64, Pages)> = self.of_range(from, end).collect();
        for (word, taken) in within {
            let pages = self.0.get_mut(&word).expect("it was just there");
            pages.left &= !taken.left;
            pages.workingset &= !taken.left;
            if pages.left == 0 {
                self.0.remove(&word);
            }
        }
    }

    /// The words that have pages of `from..end`, each with those.
    fn of_range(&self, from: u64, end: u64) -> impl DoubleEndedIterator<Item = (u64, Pages)> {
        let (from, end) = (PageIndex(from), PageIndex(end));
        self.0.range(words(from, end)).filter_map(move |(&word, pages)| {
            let left = pages.left & word_mask(word, from, end);
            (left != 0).then_some((word, Pages { left, ..*pages }))
        })
    }
}
