//! The memory shared by all tasks: the page cache, and other memory charged to the same limit.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use filemap_core::address::entries::Layer;
use filemap_core::address::page_table::PageTables;
use filemap_core::address::reverse_map::ReverseMap;
use filemap_core::cache::{FolioRun, WORD_PAGES, fits_in_leaf};
use filemap_core::decision::Log;
use filemap_core::lru::direct::DirectReclaim;
use filemap_core::lru::lists::ShrinkStats;
use filemap_core::lru::statistics::FLUSH_INTERVAL_NS;
use filemap_core::lru::{charge, high, reclaim};
use filemap_core::page_cache::PageCache;
use filemap_core::rules::Rules;
use filemap_core::units::{FileId, PageCount, PageIndex};
use filemap_job::Machine;

/// The memory of a run.
#[derive(Debug)]
pub struct Memory<C> {
    /// The page cache of all files.
    pub cache: C,
    /// Reverse map: which mappings cover a page.
    pub mappings: ReverseMap,
    /// Page-cache nodes; present if the limit is a memory cgroup's.
    charge: Option<KernelCharge>,
    limit: Option<PageCount>,
    /// `memory.high`, if tasks pay for exceeding it instead of it being a hard limit.
    high: Option<PageCount>,
    page_size: u64,
    rules: Rules,
    /// Page-table pages of processes other than the current one.
    pub other_tables: PageCount,
    /// Anonymous pages: private copies, and memory the program holds besides its files.
    anonymous: PageCount,
    /// Private copies whose task has paused before it charged them.
    uncharged_copies: Vec<(FileId, Layer, PageIndex)>,
    /// Pages evicted but not yet free.
    freeing: PageCount,
    /// When the LRU statistics are flushed.
    flushes: Flushes,
}

/// A reclaim in progress.
#[derive(Debug)]
pub enum ReclaimProgress {
    /// Memory cgroup: one batch per step.
    Direct(DirectReclaim),
    /// The whole machine: evicts this many pages in one step.
    Machine(PageCount),
}

impl<C: PageCache> Memory<C> {
    /// The memory of `machine` for `files` files, with an empty `cache`. `memory.high` is a hard
    /// limit unless [`Memory::with_memory_high`] is applied.
    pub fn new(
        machine: &Machine,
        rules: Rules,
        files: usize,
        cache: C,
        flushes: Flushes,
    ) -> Memory<C> {
        Memory {
            cache,
            mappings: ReverseMap::new(files),
            charge: machine.limit_is_cgroups().then(KernelCharge::default),
            limit: machine.cache_limit,
            high: None,
            page_size: machine.arch.page_size,
            rules,
            other_tables: PageCount(0),
            anonymous: PageCount(0),
            uncharged_copies: Vec::new(),
            freeing: PageCount(0),
            flushes,
        }
    }

    /// Lets several tasks share the memory: each repays what it charges above `memory.high`.
    pub fn with_memory_high(self, machine: &Machine) -> Memory<C> {
        let Some((high, limit)) = machine.high() else { return self };
        Memory { charge: Some(KernelCharge::default()), limit, high: Some(high), ..self }
    }

    /// Whether the memory is limited at all.
    pub fn is_limited(&self) -> bool {
        self.limit.is_some() || self.high.is_some()
    }

    /// `memory.high`, if tasks pay for exceeding it instead of it being a hard limit.
    pub fn high(&self) -> Option<PageCount> {
        self.high
    }

    /// Whether usage exceeds `memory.high`.
    pub fn is_over_high(&self, tables: &PageTables) -> bool {
        self.high.is_some_and(|high| self.used(tables) > high)
    }

    /// Sleep of a task that charged `owed` pages above `memory.high` and could not reclaim them.
    pub fn delay_ns(&self, owed: PageCount, tables: &PageTables) -> u64 {
        self.high.map_or(0, |high| high::delay_ns(self.used(tables), high, owed))
    }

    /// Starts a reclaim of at least `goal` pages.
    pub fn begin_reclaim(&self, goal: PageCount, counts_unmapped: bool) -> ReclaimProgress {
        if !self.is_memcg_limit() {
            return ReclaimProgress::Machine(goal);
        }
        let direct = DirectReclaim::new(goal, self.page_size).with_rules(&self.rules);
        ReclaimProgress::Direct(direct.count_unmapped(counts_unmapped))
    }

    /// Runs one step of a reclaim. `None`: enough is evicted, or nothing more can be.
    pub fn reclaim_batch(
        &mut self,
        reclaim: &mut ReclaimProgress,
        log: &mut impl Log,
    ) -> Option<ShrinkStats> {
        match reclaim {
            ReclaimProgress::Direct(direct) => direct.step(&mut self.cache, &self.mappings, log),
            ReclaimProgress::Machine(goal) => {
                let goal = std::mem::take(goal);
                (goal > PageCount(0)).then(|| self.reclaim_machine(goal, log))
            }
        }
    }

    fn reclaim_machine(&mut self, goal: PageCount, log: &mut impl Log) -> ShrinkStats {
        if self.rules.reclaim_flushes_statistics {
            self.cache.flush_statistics();
        }
        let evicted = reclaim::reclaim(&mut self.cache, goal, self.page_size, &self.mappings, log);
        ShrinkStats { evicted, ..ShrinkStats::default() }
    }

    /// Sets the schedule of flushes. Returns the one before.
    pub fn replace_flushes(&mut self, flushes: Flushes) -> Flushes {
        std::mem::replace(&mut self.flushes, flushes)
    }

    /// Flushes the LRU statistics if due at `now_ns` and after `begun` accesses.
    pub fn flush_if_due(&mut self, now_ns: u64, begun: u64) {
        if self.is_limited() && self.flushes.is_due(now_ns, begun) {
            self.cache.flush_statistics();
        }
    }

    /// Counts evicted pages as not yet free.
    pub fn defer_free(&mut self, pages: PageCount) {
        self.freeing += pages;
    }

    /// Whether evicted pages are not yet free.
    pub fn is_freeing(&self) -> bool {
        self.freeing > PageCount(0)
    }

    /// Counts them as free.
    pub fn free(&mut self, pages: PageCount) {
        self.freeing -= pages;
    }

    /// Whether the limit is a memory cgroup's, to which each folio is charged separately.
    pub fn is_memcg_limit(&self) -> bool {
        self.charge.is_some()
    }

    /// Whether the limit is the machine's own memory.
    pub fn is_machine_limit(&self) -> bool {
        self.limit.is_some() && !self.is_memcg_limit()
    }

    /// Free pages below the limit.
    pub fn room(&self, tables: &PageTables) -> PageCount {
        let room = self.limit.map(|limit| limit.saturating_sub(self.used(tables)));
        room.unwrap_or(PageCount(u64::MAX))
    }

    /// Pages to evict before `pages` more fit.
    pub fn shortfall(&self, pages: PageCount, tables: &PageTables) -> PageCount {
        self.limit.map_or(PageCount(0), |limit| (self.used(tables) + pages).saturating_sub(limit))
    }

    /// Adds absent folios of `file`, locked for reading.
    #[inline(always)]
    pub fn add(&mut self, file: FileId, run: FolioRun) {
        self.cache.add(file, run);
        if let Some(charge) = &mut self.charge {
            charge.add(file, run);
        }
    }

    /// Approximate memory used by the model for this state, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.cache.held_bytes() + self.charge.as_ref().map_or(0, KernelCharge::held_bytes)
    }

    /// Charges anonymous pages that a process holds besides its files.
    pub fn charge_anonymous(&mut self, pages: PageCount) {
        self.anonymous += pages;
    }

    /// Uncharges anonymous pages.
    pub fn uncharge_anonymous(&mut self, pages: PageCount) {
        self.anonymous -= pages;
    }

    /// Records a private copy that its task has yet to charge.
    pub fn add_uncharged_copy(&mut self, file: FileId, layer: Layer, index: PageIndex) {
        self.uncharged_copies.push((file, layer, index));
    }

    /// Whether a private copy still exists, and is still to be charged.
    pub fn has_uncharged_copy(&self, copy: (FileId, Layer, PageIndex)) -> bool {
        self.uncharged_copies.contains(&copy)
    }

    /// Removes a private copy from those to be charged.
    pub fn remove_uncharged_copy(&mut self, copy: (FileId, Layer, PageIndex)) {
        self.uncharged_copies.retain(|other| *other != copy);
    }

    /// Uncharges `copies` private copies, which were all of the pages `range` of a layer. Those
    /// that were not charged yet no longer will be.
    pub fn free_copies(
        &mut self,
        (file, layer): (FileId, Layer),
        range: Range<PageIndex>,
        copies: PageCount,
    ) {
        let before = self.uncharged_copies.len();
        self.uncharged_copies.retain(|(of_file, of_layer, index)| {
            (*of_file, *of_layer) != (file, layer) || !range.contains(index)
        });
        let uncharged = before - self.uncharged_copies.len();
        self.uncharge_anonymous(copies - PageCount(uncharged as u64));
    }

    /// Pages charged against the limit.
    fn used(&self, tables: &PageTables) -> PageCount {
        let pages = tables.pages() + self.other_tables;
        let charged = |charge: &KernelCharge| charge.pages(pages, &self.cache, self.page_size);
        let kernel = self.charge.as_ref().map_or(PageCount(0), charged);
        self.cache.inactive() + self.cache.active() + self.anonymous + self.freeing + kernel
    }
}

/// The words of each file that ever had a leaf node (`xa_node`) in the page-cache index.
#[derive(Clone, Debug, Default)]
pub struct KernelCharge {
    /// Bitmaps of 64 words each, keyed by file and bitmap number.
    words: BTreeMap<(FileId, u64), u64>,
    /// Number of bits set.
    ever: u64,
}

impl KernelCharge {
    /// Records folios of `file` added to the cache.
    pub fn add(&mut self, file: FileId, run: FolioRun) {
        if !fits_in_leaf(run.order) {
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

    /// Approximate memory used by the bitmaps, in bytes.
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

/// The schedule of future flushes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flushes {
    /// Every two seconds of virtual time.
    Timed {
        /// Time of the next flush.
        next_ns: u64,
    },
    /// Where a kernel flushed: the numbers of accesses begun by then, ascending.
    AtAccesses(VecDeque<u64>),
}

impl Flushes {
    /// The schedule of a run whose time is predicted.
    pub const TIMED: Flushes = Flushes::Timed { next_ns: FLUSH_INTERVAL_NS };

    /// Environment value of records whose flushes come from a kernel.
    pub const FROM_KERNEL: &str = "where the kernel beside it had them";

    /// The flushes observed in a run on a kernel.
    pub fn at_accesses(begun: &[u64]) -> Flushes {
        Flushes::AtAccesses(begun.iter().copied().collect())
    }

    /// Whether a flush happened since the last call, given the time `now_ns` and `begun` accesses.
    #[inline]
    pub fn is_due(&mut self, now_ns: u64, begun: u64) -> bool {
        match self {
            Flushes::Timed { next_ns } => {
                let is_due = now_ns >= *next_ns;
                if is_due {
                    *next_ns =
                        (now_ns - now_ns % FLUSH_INTERVAL_NS).saturating_add(FLUSH_INTERVAL_NS);
                }
                is_due
            }
            Flushes::AtAccesses(seen) => {
                let mut is_due = false;
                while seen.front().is_some_and(|&at| at <= begun) {
                    seen.pop_front();
                    is_due = true;
                }
                is_due
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_that_were_seen_are_due_by_accesses_and_not_by_time() {
        let mut flushes = Flushes::at_accesses(&[3, 3, 10]);
        let due: Vec<bool> =
            [2, 3, 4, 12, 13].map(|begun| flushes.is_due(9 * FLUSH_INTERVAL_NS, begun)).into();
        assert_eq!(due, [false, true, false, true, false]);
        let mut timed = Flushes::TIMED;
        let due = [
            1,
            FLUSH_INTERVAL_NS,
            FLUSH_INTERVAL_NS + 1,
            5 * FLUSH_INTERVAL_NS,
            6 * FLUSH_INTERVAL_NS - 1,
        ];
        let due = due.map(|now_ns| timed.is_due(now_ns, 0));
        assert_eq!(due, [false, true, false, true, false]);
    }
}
