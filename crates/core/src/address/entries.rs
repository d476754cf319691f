//! The page-table entries that map a file.

use crate::cache::{FileCache, WORD_PAGES};
use crate::units::{PageCount, PageIndex};

/// A set of page-table entries for the pages of a file. A page mapped by several VMAs has an entry
/// in each, so VMAs that share pages are in different layers ([`crate::address::reverse_map`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layer(pub u32);

impl Layer {
    /// The first layer; the only one unless pages are mapped twice.
    pub const FIRST: Layer = Layer(0);
}

/// State of the pages of one word of a file, as seen by one layer, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordPages {
    /// Cached.
    pub present: u64,
    /// In folios of more than one page.
    pub large: u64,
    /// In folios that are being read.
    pub locked: u64,
    /// In folios that carry the readahead mark.
    pub marked: u64,
    /// In folios that carry the workingset flag.
    pub workingset: u64,
    /// Mapped by page-table entries.
    pub mapped: u64,
    /// Replaced in the mapping by private copies.
    pub copied: u64,
}

impl WordPages {
    /// Cached pages that are neither mapped nor replaced by private copies.
    pub fn unmapped(&self) -> u64 {
        self.present & !self.mapped & !self.copied
    }
}

/// Page-table entries removed from one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnmappedPages {
    /// Pages that were mapped.
    pub mapped: u64,
    /// Pages whose entries were accessed.
    pub accessed: u64,
    /// Pages replaced by private copies.
    pub copied: u64,
}

/// A file with its entries in one layer.
pub trait MappedFile: FileCache {
    /// State of the pages of `mask` in `word`. Other bits are undefined.
    fn pages(&self, word: u64, mask: u64) -> WordPages;

    /// Whether `index` is mapped, and whether a private copy replaces it.
    fn entry(&self, index: PageIndex) -> (bool, bool) {
        let bit = 1 << (index.0 % WORD_PAGES);
        let pages = self.pages(index.0 / WORD_PAGES, bit);
        (pages.mapped & bit != 0, pages.copied & bit != 0)
    }

    /// Maps the pages of `mask` in `word`, which are cached and not mapped. Pages in `young` are
    /// mapped with the accessed bit.
    fn map(&mut self, word: u64, mask: u64, young: u64);

    /// Sets the accessed bit of the entry that maps `index`, if there is one. Returns whether
    /// the page is mapped, or replaced by a private copy.
    fn touch(&mut self, index: PageIndex) -> bool;

    /// [`MappedFile::touch`] of the pages `from..end`, up to the first that is not mapped. Returns
    /// that one, or `end`.
    fn touch_to(&mut self, from: PageIndex, end: PageIndex) -> PageIndex {
        let mut next = from;
        while next < end && self.touch(next) {
            next += PageCount(1);
        }
        next
    }

    /// Replaces `index` in the mapping by a private copy. Returns whether it was none before.
    fn copy(&mut self, index: PageIndex) -> bool;

    /// The words, in ascending order, that have an entry or a private copy for one of the pages
    /// `from..end`.
    fn words_with_entries(&self, from: PageIndex, end: PageIndex) -> Vec<u64>;

    /// Removes the entries and private copies of the pages of `mask` in `word`.
    fn unmap(&mut self, word: u64, mask: u64) -> UnmappedPages;

    /// Clears the accessed bits of the entries that map the pages of `mask` in `word`. Returns
    /// those that were set.
    fn make_old(&mut self, word: u64, mask: u64) -> u64;
}
