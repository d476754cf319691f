//! The page-table entries that map a file.

use crate::cache::{FileCache, Folio};
use crate::units::{PageCount, PageIndex};

/// One of the sets of page-table entries that a file's pages have. A page that several VMAs map
/// has an entry in each, so VMAs that share pages are in different layers
/// ([`crate::address::reverse_map`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layer(pub u32);

impl Layer {
    /// The only one, where no page is mapped twice.
    pub const FIRST: Layer = Layer(0);
}

/// Pages of a file, one behind the other, that are alike as one layer maps them: all absent, all
/// in folios of one page, or all in the same large folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// The page behind the last of them. Pages from here on may be alike too.
    pub end: PageIndex,
    /// The folio that holds the first of them; `None` where they are absent. Each page behind the
    /// first has a folio of its own, in the same state, where this is of one page.
    pub folio: Option<Folio>,
    /// In folios that carry the workingset flag.
    pub workingset: bool,
    /// Mapped by page-table entries.
    pub mapped: bool,
    /// Replaced in the mapping by private copies.
    pub copied: bool,
}

/// Entries of one word that were taken away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmapped {
    /// Pages that were mapped.
    pub mapped: u64,
    /// Pages whose entries had been accessed.
    pub accessed: u64,
    /// Pages that had been replaced by private copies.
    pub copied: u64,
}

/// A file with its entries in one layer.
pub trait MappedFile: FileCache {
    /// What the page `from` is, and how far the pages behind it are alike: at most to `end`, which
    /// lies behind `from`.
    fn pages(&self, from: PageIndex, end: PageIndex) -> Pages;

    /// Maps the pages `from..end`, which are cached and not mapped; as accessed where they are
    /// `young`.
    fn map(&mut self, from: PageIndex, end: PageIndex, young: bool);

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

    /// Replaces `index` in the mapping by a private copy.
    fn copy(&mut self, index: PageIndex);

    /// The words, in ascending order, that have an entry or a private copy for one of the pages
    /// `from..end`.
    fn words_with_entries(&self, from: PageIndex, end: PageIndex) -> Vec<u64>;

    /// Takes away the entries and private copies of the pages of `mask` in `word`.
    fn unmap(&mut self, word: u64, mask: u64) -> Unmapped;
}
