//! The page cache of all files.

use crate::address::entries::{Layer, MappedFile};
use crate::cache::{FileCache, Folio, FolioRun};
use crate::decision::Log;
use crate::lru::lists::LruLists;
use crate::units::{FileId, PageCount, PageIndex};

/// The page cache: the cached pages of each file, the page-table entries that map them, and the LRU
/// lists.
///
/// Implementations keep state; the rules decide what happens to it. All implementations behave
/// identically, down to the order of evictions.
pub trait PageCache: LruLists {
    /// Approximate memory used, in bytes; 0 if the caller does not limit it.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// The cached pages of `file`.
    fn file(&mut self, file: FileId) -> impl FileCache;

    /// The cached pages of `file` and its entries in `layer`.
    fn mapped(&mut self, file: FileId, layer: Layer) -> impl MappedFile;

    /// Adds absent folios, locked. Each enters at the head of the inactive list, or of the active
    /// list if [`crate::lru::workingset`] says so, given the flushed statistics.
    fn add(&mut self, file: FileId, run: FolioRun);

    /// Unlocks the folios of `pages` pages from `start`, whose data has arrived. They have to be
    /// the locked rest of a run as it was added, or the beginning of it.
    fn unlock(&mut self, file: FileId, start: PageIndex, pages: PageCount);

    /// Drops folios of `file` within the pages `from..end`, as [`crate::lru::invalidate`] decides,
    /// without shadows. Shadows in the range are dropped too. Returns the number of pages.
    fn invalidate(
        &mut self,
        file: FileId,
        from: PageIndex,
        end: PageIndex,
        log: &mut impl Log,
    ) -> PageCount;

    /// The layers in which pages `from..end` of `file` are mapped, lowest first, each with the
    /// number of mapped pages.
    fn mapped_in(
        &mut self,
        file: FileId,
        from: PageIndex,
        end: PageIndex,
    ) -> Vec<(Layer, PageCount)>;

    /// Splits the large `folio` of `file` into unmapped base pages that inherit its state and its
    /// place in the list. The mark stays with the first page. If `reversed`, the other pages follow
    /// it in descending order.
    ///
    /// Mirrors `split_huge_page_to_list_to_order`, 6.12 and 6.18. Test: `tests/cold_or_pageout.rs`.
    fn split(&mut self, file: FileId, folio: Folio, reversed: bool);

    /// Deactivates `folios` of `file`, given in page order: clears the referenced flag, and moves
    /// active folios to the head of the inactive list with the workingset flag.
    ///
    /// Mirrors `folio_deactivate`, 6.12 and 6.18. Test: `tests/cold_or_pageout.rs`.
    fn deactivate(&mut self, file: FileId, folios: &[Folio]);

    /// Evicts `folios` of `file`, given in page order, regardless of their place in the lists. With
    /// `of_machine` this counts as an eviction by reclaim; otherwise they return to the active list
    /// ([`crate::cold_or_pageout`]).
    ///
    /// Mirrors `reclaim_pages`, 6.12 and 6.18. Test: `tests/cold_or_pageout.rs`.
    fn page_out(&mut self, file: FileId, folios: &[Folio], of_machine: bool, log: &mut impl Log);

    /// Locks the up-to-date folios of `pages` pages from `start`: they cannot be evicted until
    /// unlocked, as a task holds them.
    fn lock(&mut self, file: FileId, start: PageIndex, pages: PageCount);

    /// Number of leaf nodes of the index: words with a page in a folio of fewer than 64 pages
    /// ([`crate::lru::charge`]).
    fn nodes(&self) -> u64;
}
