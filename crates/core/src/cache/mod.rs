//! The cached pages of a file.

use std::ops::Range;

use crate::units::{Order, PageCount, PageIndex};
pub use crate::word::{WORD_PAGES, by_word, up_to_bit, word_mask, words};

/// Whether folios of `order` are stored in leaf nodes of the index: smaller than a word.
pub fn fits_in_leaf(order: Order) -> bool {
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
    /// The page after its last.
    pub fn end(&self) -> PageIndex {
        self.head + PageCount(self.order.pages())
    }
}

/// Consecutive folios of one order to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolioRun {
    /// First page of the first folio, aligned to `order`.
    pub start: PageIndex,
    /// Order of each.
    pub order: Order,
    /// Number of folios: at least 1.
    pub folios: u64,
    /// First page of the folio that gets the mark.
    pub marked: Option<PageIndex>,
}

impl FolioRun {
    /// Pages in the run.
    pub fn pages(&self) -> PageCount {
        PageCount(self.folios << self.order.0)
    }

    /// The page after the last.
    pub fn end(&self) -> PageIndex {
        self.start + self.pages()
    }

    /// The first `folios` of them.
    pub fn first(&self, folios: u64) -> FolioRun {
        let part = FolioRun { folios, ..*self };
        FolioRun { marked: self.marked.filter(|&marked| marked < part.end()), ..part }
    }

    /// The folios after the first `folios`.
    pub fn after_first(&self, folios: u64) -> FolioRun {
        let start = self.first(folios).end();
        let marked = self.marked.filter(|&marked| marked >= start);
        FolioRun { start, folios: self.folios - folios, marked, ..*self }
    }
}

/// The part of the page cache that belongs to one file.
pub trait FileCache {
    /// The folio that holds `index`.
    fn folio(&self, index: PageIndex) -> Option<Folio>;

    /// The first absent page at or after `from`, or `end`.
    fn next_absent(&self, from: PageIndex, end: PageIndex) -> PageIndex;

    /// The first cached page at or after `from`, or `end`.
    fn next_present(&self, from: PageIndex, end: PageIndex) -> PageIndex;

    /// The first run of absent pages at or after `from`, up to the first cached page or `end`;
    /// empty if all are cached.
    fn gap(&self, from: PageIndex, end: PageIndex) -> Range<PageIndex> {
        let start = self.next_absent(from, end);
        start..self.next_present(start, end)
    }

    /// The end of the base pages from `from` on that are cached, unlocked and unmarked: at most
    /// `end`, and `from` if its page is not. It may be earlier than the last of them, but not
    /// earlier than all.
    fn plain_end(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        let is_plain = |folio: &Folio| folio.order == Order(0) && !folio.locked && !folio.marked;
        let plain = (from < end).then(|| self.folio(from)).flatten().filter(is_plain);
        plain.map_or(from, |folio| folio.end())
    }

    /// The end of the folios of any size from `from` on that are cached, unlocked and unmarked: at
    /// most `end`, though the last folio may extend past it. It may be earlier than the last of
    /// them, but not earlier than all.
    fn ready_end(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        let is_ready = |folio: &Folio| !folio.locked && !folio.marked;
        let ready = (from < end).then(|| self.folio(from)).flatten().filter(is_ready);
        ready.map_or(from, |folio| folio.end().min(end))
    }

    /// The last absent page at or before `last` that is not before `floor`.
    fn previous_absent(&self, last: PageIndex, floor: PageIndex) -> Option<PageIndex>;

    /// Cached pages of `from..end`.
    fn cached(&self, from: PageIndex, end: PageIndex) -> PageCount;

    /// Clears the readahead mark of the folio that holds `index`.
    fn clear_mark(&mut self, index: PageIndex);

    /// Marks the folio that holds `index` as accessed, by `read(2)` or by an accessed entry that is
    /// zapped ([`crate::lru::reclaim::access_effect`]).
    fn mark_accessed(&mut self, index: PageIndex);

    /// [`FileCache::mark_accessed`] for each folio that holds pages of `from..end`, lowest first,
    /// up to a page that is absent. Returns that, or `end`.
    fn mark_accessed_until(&mut self, from: PageIndex, end: PageIndex) -> PageIndex {
        let mut next = from;
        while next < end {
            let Some(folio) = self.folio(next) else { return next };
            self.mark_accessed(next);
            next = folio.end();
        }
        end
    }

    /// [`FileCache::mark_accessed`] for the pages of `mask` in `word`, in ascending order. Every
    /// cached page among them is a folio of order 0.
    fn mark_pages_accessed(&mut self, word: u64, mask: u64) {
        let mut rest = mask;
        while rest != 0 {
            self.mark_accessed(PageIndex(word * WORD_PAGES + u64::from(rest.trailing_zeros())));
            rest &= rest - 1;
        }
    }

    /// Sets the referenced flag of the folio that holds `index`, without moving it.
    fn set_referenced(&mut self, index: PageIndex);
}
