//! The page cache of all files.

use crate::address::entries::{Layer, MappedFile};
use crate::cache::{FileCache, FolioRun};
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

    /// The folios in `pages` pages from `start`, all of them up to date, cannot be evicted until
    /// they are unlocked: a task holds them.
    fn lock(&mut self, file: FileId, start: PageIndex, pages: PageCount);

    /// Words of which a page is cached in a folio of fewer than 64 pages: each takes a leaf node of
    /// the kernel's index ([`crate::lru::charge`]).
    fn nodes(&self) -> u64;
}
