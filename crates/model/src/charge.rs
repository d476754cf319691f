//! The kernel's own memory, where a memory cgroup's limit pays for it.

use std::collections::BTreeMap;

use filemap_core::cache::{FolioRun, WORD_PAGES, in_leaf};
use filemap_core::lru::charge;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageCount};

/// Words of files that ever had a leaf node in the index of the page cache.
#[derive(Clone, Debug, Default)]
pub struct Charge {
    /// 64 words a bitmap, by its number in the file.
    words: BTreeMap<(FileId, u64), u64>,
    /// Bits that are set.
    ever: u64,
}

impl Charge {
    /// Notes folios of `file` that are added to the cache.
    pub fn add(&mut self, file: FileId, run: FolioRun) {
        if !in_leaf(run.order) {
            return;
        }
        let end = run.end().0.div_ceil(WORD_PAGES);
        let mut next = run.start.0 / WORD_PAGES;
        while next < end {
            let stop = end.min((next / 64 + 1) * 64);
            let bits = u64::MAX >> (64 - (stop - next)) << (next % 64);
            let words = self.words.entry((file, next / 64)).or_default();
            self.ever += u64::from((bits & !*words).count_ones());
            *words |= bits;
            next = stop;
        }
    }

    /// About how many bytes of memory the notes on them take.
    pub fn held_bytes(&self) -> u64 {
        self.words.len() as u64 * 24
    }

    /// Pages charged for the index of `cache` and for `tables` pages of page tables.
    pub fn pages(&self, tables: PageCount, cache: &impl PageCache, page_size: u64) -> PageCount {
        let cached = cache.inactive() + cache.active();
        let nodes = charge::nodes(cache.nodes(), self.ever, cached);
        charge::kernel_pages(tables, nodes, page_size)
    }
}
