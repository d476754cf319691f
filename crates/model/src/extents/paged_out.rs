//! Pages evicted on demand (MADV_PAGEOUT), which return to the active list.

use std::collections::BTreeMap;

use filemap_core::cache::{WORD_PAGES, by_word, word_mask, words};
use filemap_core::units::PageIndex;

/// By global word number.
#[derive(Debug, Default)]
pub struct PagedOutPages(BTreeMap<u64, PagedOutWord>);

/// Paged-out pages of a word, one bit each.
#[derive(Clone, Copy, Debug, Default)]
struct PagedOutWord {
    left: u64,
    /// Pages that had the workingset flag.
    workingset: u64,
}

impl PagedOutPages {
    /// Memory used, in bytes.
    pub fn held_bytes(&self) -> u64 {
        (self.0.len() * size_of::<(u64, PagedOutWord)>()) as u64
    }

    /// Whether no page is paged out.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the pages `from..end`, with or without the workingset flag.
    pub fn add(&mut self, from: u64, end: u64, workingset: bool) {
        for (word, mask) in by_word(PageIndex(from), PageIndex(end)) {
            let pages = self.0.entry(word).or_default();
            pages.left |= mask;
            pages.workingset &= !mask;
            pages.workingset |= if workingset { mask } else { 0 };
        }
    }

    /// The first paged-out page of `from..end`.
    pub fn next(&self, from: u64, end: u64) -> Option<u64> {
        self.words_in(from, end)
            .next()
            .map(|(word, pages)| word * WORD_PAGES + u64::from(pages.left.trailing_zeros()))
    }

    /// The last paged-out page of `from..end`, and its workingset flag.
    pub fn last(&self, from: u64, end: u64) -> Option<(u64, bool)> {
        self.words_in(from, end).next_back().map(|(word, pages)| {
            let bit = pages.left.ilog2();
            (word * WORD_PAGES + u64::from(bit), pages.workingset >> bit & 1 == 1)
        })
    }

    /// Removes the pages `from..end`.
    pub fn take(&mut self, from: u64, end: u64) {
        let within: Vec<(u64, PagedOutWord)> = self.words_in(from, end).collect();
        for (word, taken) in within {
            let pages = self.0.get_mut(&word).expect("it was just there");
            pages.left &= !taken.left;
            pages.workingset &= !taken.left;
            if pages.left == 0 {
                self.0.remove(&word);
            }
        }
    }

    /// The words with paged-out pages of `from..end`, restricted to the range.
    fn words_in(
        &self,
        from: u64,
        end: u64,
    ) -> impl DoubleEndedIterator<Item = (u64, PagedOutWord)> {
        let (from, end) = (PageIndex(from), PageIndex(end));
        self.0.range(words(from, end)).filter_map(move |(&word, pages)| {
            let left = pages.left & word_mask(word, from, end);
            (left != 0).then_some((word, PagedOutWord { left, ..*pages }))
        })
    }
}
