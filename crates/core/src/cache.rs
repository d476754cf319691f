//! The page cache as the rules see it.

use crate::decision::Log;
use crate::segments::Layer;
use crate::statistics::Statistics;
use crate::units::{Order, PageCount, PageIndex};
use crate::vma::Mapping;
pub use crate::word::{WORD_PAGES, word_mask, words};

/// 64 pages of a file, aligned, one bit a page, lowest index in the lowest bit.
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

/// Whether folios of `order` are smaller than a word.
pub fn in_leaf(order: Order) -> bool {
    order.pages() < WORD_PAGES
}

/// A folio in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folio {
    /// Its first page.
    pub head: PageIndex,
    /// Its size.
    pub order: Order,
    /// Whether its data is still being read.
    pub locked: bool,
    /// Whether it carries the readahead mark.
    pub marked: bool,
}

impl Folio {
    /// The page behind its last.
    pub fn end(&self) -> PageIndex {
        self.head + PageCount(self.order.pages())
    }
}

/// Folios of one order to be added, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolioRun {
    /// First page of the first folio, aligned to `order`.
    pub start: PageIndex,
    /// Order of each.
    pub order: Order,
    /// How many: at least 1.
    pub folios: u64,
    /// First page of the folio that gets the mark.
    pub marked: Option<PageIndex>,
}

impl FolioRun {
    /// Pages in the run.
    pub fn pages(&self) -> PageCount {
        PageCount(self.folios << self.order.0)
    }

    /// The page behind the last.
    pub fn end(&self) -> PageIndex {
        self.start + self.pages()
    }
}

/// What one pass over the inactive list's tail did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shrunk {
    /// Pages evicted.
    pub evicted: PageCount,
    /// Pages that went round the inactive list, or to the active one.
    pub kept: PageCount,
    /// Those of them that went to the active one.
    pub activated: PageCount,
}

/// The page cache of one file, the page-table entries of its mapping, and its reclaim lists.
///
/// Implementations keep state; what happens to it is decided by the rules. All of them behave
/// alike, to the order of evictions.
pub trait PageCache {
    /// From now on the entries that [`PageCache::word`], [`PageCache::map`], [`PageCache::touch`]
    /// and [`PageCache::copy`] speak of are those of `layer`: at first the first.
    fn select(&mut self, layer: Layer);

    /// About how many bytes of memory it takes itself; 0 where nobody bounds that.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// The 64 pages that begin at page `64 * word`.
    fn word(&self, word: u64) -> PageWord;

    /// The folio that holds `index`.
    fn folio(&self, index: PageIndex) -> Option<Folio>;

    /// The first absent page at or behind `from`, or `end`.
    fn next_absent(&self, from: PageIndex, end: PageIndex) -> PageIndex;

    /// The first cached page at or behind `from`, or `end`.
    fn next_present(&self, from: PageIndex, end: PageIndex) -> PageIndex;

    /// The last absent page at or before `last` that is not before `floor`.
    fn previous_absent(&self, last: PageIndex, floor: PageIndex) -> Option<PageIndex>;

    /// Cached pages of `from..end`.
    fn cached(&self, from: PageIndex, end: PageIndex) -> PageCount;

    /// Adds absent folios, locked. Each enters the inactive list's head, or the active one's where
    /// [`crate::workingset`] says so, by the statistics.
    fn add(&mut self, run: FolioRun);

    /// The data of `pages` pages from `start`, a run as it was added, has arrived: its folios are
    /// unlocked. Runs arrive in the order in which they were added.
    fn unlock(&mut self, start: PageIndex, pages: PageCount);

    /// Takes the readahead mark from the folio that holds `index`.
    fn clear_mark(&mut self, index: PageIndex);

    /// Maps the pages of `mask` in `word`; those of `young` as accessed.
    fn map(&mut self, word: u64, mask: u64, young: u64);

    /// Sets the accessed bit of the entry that maps `index`, if there is one. Returns whether
    /// the page is mapped, or replaced by a private copy.
    fn touch(&mut self, index: PageIndex) -> bool;

    /// Replaces `index` in the mapping by a private copy.
    fn copy(&mut self, index: PageIndex);

    /// A `read(2)` used the folio that holds `index` ([`crate::reclaim::used`]).
    fn mark_accessed(&mut self, index: PageIndex);

    /// Pages on the inactive list.
    fn inactive(&self) -> PageCount;

    /// Pages on the active list.
    fn active(&self) -> PageCount;

    /// The sizes of the lists at the last flush.
    fn statistics(&self) -> Statistics;

    /// The statistics catch up with the lists.
    fn flush_statistics(&mut self);

    /// Words of which a page is cached in a folio of fewer than 64 pages: each takes a leaf node of
    /// the kernel's index ([`crate::charge`]).
    fn nodes(&self) -> u64;

    /// Moves folios from the active list's tail to the inactive list's head until at least
    /// `pages` pages have moved; young executable ones stay ([`crate::reclaim`]), each of which
    /// moves the clock of evictions ([`crate::workingset`]).
    fn age(&mut self, pages: PageCount, mapping: &Mapping);

    /// Takes folios from the inactive list's tail until `goal` pages are evicted or each folio
    /// that was on the list has been looked at once; [`crate::reclaim`] judges them. What becomes
    /// active moves the clock of evictions in the end.
    fn shrink(&mut self, goal: PageCount, mapping: &Mapping, log: &mut impl Log) -> Shrunk;
}
