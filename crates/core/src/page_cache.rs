//! The page cache of all files.

use crate::address::entries::{Layer, MappedFile};
use crate::cache::{FileCache, Folio, FolioRun};
use crate::decision::Log;
use crate::lru::lists::Lists;
use crate::units::{FileId, PageCount, PageIndex};

/// The page cache: what each file has cached, the entries that map it, and the lists of all.
///
/// Implementations keep state; what happens to it is decided by the rules. All of them behave
/// alike, to the order of evictions.
pub trait PageCache: Lists {
    /// About how many bytes of memory it takes itself; 0 where nobody bounds that.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// What `file` has cached.
    fn file(&mut self, file: FileId) -> impl FileCache;

    /// What `file` has cached, and its entries in `layer`.
    fn mapped(&mut self, file: FileId, layer: Layer) -> impl MappedFile;

    /// Adds absent folios, locked. Each enters the inactive list's head, or the active one's where
    /// [`crate::lru::workingset`] says so, by the statistics.
    fn add(&mut self, file: FileId, run: FolioRun);

    /// The data of `pages` pages from `start`, all that is still locked of a run as it was added or
    /// what it begins with, has arrived: its folios are unlocked.
    fn unlock(&mut self, file: FileId, start: PageIndex, pages: PageCount);

    /// Folios of `file` that the pages `from..end` hold leave the cache, where
    /// [`crate::lru::invalidate`] says so, and nothing remembers that. Evictions of pages in there
    /// are forgotten as well. Returns how many pages left.
    fn invalidate(
        &mut self,
        file: FileId,
        from: PageIndex,
        end: PageIndex,
        log: &mut impl Log,
    ) -> PageCount;

    /// The layers in which pages of `from..end` of `file` are mapped, lowest first, each with how
    /// many of them.
    fn mapped_in(
        &mut self,
        file: FileId,
        from: PageIndex,
        end: PageIndex,
    ) -> Vec<(Layer, PageCount)>;

    /// `folio` of `file`, a large one, becomes base pages: they are what it was, in its place in
    /// its list, and no entry maps them. Its mark stays with the first of them. Where `reversed`,
    /// the others stand after the first one from the last page on.
    ///
    /// Mirrors `split_huge_page_to_list_to_order`, 6.12 and 6.18. Test: `tests/advised.rs`.
    fn split(&mut self, file: FileId, folio: Folio, reversed: bool);

    /// `folios` of `file`, in the order of their pages, are not referenced any more; those on the
    /// active list get the workingset flag and go to the inactive list's head.
    ///
    /// Mirrors `folio_deactivate`, 6.12 and 6.18. Test: `tests/advised.rs`.
    fn deactivate(&mut self, file: FileId, folios: &[Folio]);

    /// `folios` of `file`, in the order of their pages, are evicted from wherever they stand. Where
    /// `of_machine`, the eviction is one like those of reclaim; else they return to the active list
    /// ([`crate::advised`]).
    ///
    /// Mirrors `reclaim_pages`, 6.12 and 6.18. Test: `tests/advised.rs`.
    fn page_out(&mut self, file: FileId, folios: &[Folio], of_machine: bool, log: &mut impl Log);

    /// The folios in `pages` pages from `start`, all of them up to date, cannot be evicted until
    /// they are unlocked: a task holds them.
    fn lock(&mut self, file: FileId, start: PageIndex, pages: PageCount);

    /// Words of which a page is cached in a folio of fewer than 64 pages: each takes a leaf node of
    /// the kernel's index ([`crate::lru::charge`]).
    fn nodes(&self) -> u64;
}
