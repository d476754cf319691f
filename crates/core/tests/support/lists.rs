//! The reclaim lists of a cache, brought into a state by hand.

use filemap_core::address::entries::MappedFile;
use filemap_core::address::mapping::FileMapping;
use filemap_core::address::reverse_map::ReverseMap;
use filemap_core::address::vma::Vma;
use filemap_core::cache::{FileCache, FolioRun, WORD_PAGES};
use filemap_core::decision::Log;
use filemap_core::lru::direct::DirectReclaim;
use filemap_core::lru::lists::{LruLists, Scan, ShrinkStats};
use filemap_core::units::{Order, PageCount, PageIndex};

use super::machine::part;
use super::map;
use super::one_file::{OneFile, mapped};

/// A mapping of the whole cache.
pub fn whole(vma: Vma) -> ReverseMap {
    mapped(FileMapping::new(vma, None))
}

pub fn plain() -> ReverseMap {
    whole(part(0, 4096))
}

/// Maps `index` by a young entry.
pub fn touch(cache: &mut OneFile, index: u64) {
    let bit = 1 << (index % WORD_PAGES);
    cache.map(index / WORD_PAGES, bit, bit);
}

/// All steps of a `direct` reclaim. Returns their sum.
pub fn reclaim<L: LruLists>(
    mut direct: DirectReclaim,
    lists: &mut L,
    mappings: &ReverseMap,
    log: &mut impl Log,
) -> ShrinkStats {
    let mut shrunk = ShrinkStats::default();
    while let Some(step) = direct.step(lists, mappings, log) {
        shrunk += step;
    }
    shrunk
}

/// Scans the whole inactive list once. Returns the pages evicted and kept.
pub fn look_once(cache: &mut OneFile, mappings: &ReverseMap) -> (u64, u64) {
    let shrunk = cache.shrink(Scan::until(PageCount(u64::MAX)), mappings, &mut ());
    (shrunk.evicted.0, shrunk.kept.0)
}

/// A cache of this many pages, the first `active` of them on the active list, in order.
pub fn with_active(pages: u64, active: u64) -> OneFile {
    let mut cache = map::cache(&format!("{pages}#"));
    for page in 0..active {
        cache.mark_accessed(PageIndex(page));
        cache.mark_accessed(PageIndex(page));
    }
    assert_eq!(cache.active(), PageCount(active));
    cache
}

/// Adds a folio, whose data arrives immediately.
pub fn add(cache: &mut OneFile, index: u64, order: u8) {
    let start = PageIndex(index);
    cache.add(FolioRun { start, order: Order(order), folios: 1, marked: None });
    cache.unlock(start, PageCount(1 << order));
}
