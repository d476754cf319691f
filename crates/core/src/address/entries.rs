//! The page-table entries that map a file.

use crate::cache::FileCache;
use crate::units::PageIndex;

/// One of the sets of page-table entries that a file's pages have. A page that several VMAs map
/// has an entry in each, so VMAs that share pages are in different layers
/// ([`crate::address::reverse_map`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layer(pub u32);

impl Layer {
    /// The only one, where no page is mapped twice.
    pub const FIRST: Layer = Layer(0);
}

/// 64 pages of a file as one layer maps them, aligned, one bit a page, lowest index in the lowest
/// bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageWord {
    /// In the page cache.
    pub present: u64,
    /// In the cache and still being read.
    pub locked: u64,
    /// In a folio that carries the readahead mark.
    pub marked: u64,
    /// In a folio that carries the workingset flag.
    pub workingset: u64,
    /// Mapped by a page-table entry.
    pub mapped: u64,
    /// Replaced in the mapping by a private copy.
    pub copied: u64,
    /// In a folio of order 1 or more.
    pub large: u64,
}

/// Entries of one word that were taken away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmapped {
    /// Pages whose entries had been accessed.
    pub accessed: u64,
    /// Pages that had been replaced by private copies.
    pub copied: u64,
}

/// A file with its entries in one layer.
pub trait MappedFile: FileCache {
    /// The 64 pages that begin at page `64 * word`.
    fn word(&self, word: u64) -> PageWord;

    /// Maps the pages of `mask` in `word`; those of `young` as accessed.
    fn map(&mut self, word: u64, mask: u64, young: u64);

    /// Sets the accessed bit of the entry that maps `index`, if there is one. Returns whether
    /// the page is mapped, or replaced by a private copy.
    fn touch(&mut self, index: PageIndex) -> bool;

    /// Replaces `index` in the mapping by a private copy.
    fn copy(&mut self, index: PageIndex);

    /// The words, in ascending order, that have an entry or a private copy for one of the pages
    /// `from..end`.
    fn words_with_entries(&self, from: PageIndex, end: PageIndex) -> Vec<u64>;

    /// Takes away the entries and private copies of the pages of `mask` in `word`.
    fn unmap(&mut self, word: u64, mask: u64) -> Unmapped;
}
