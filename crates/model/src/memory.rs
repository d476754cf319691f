//! The memory that everything shares: the page cache, and what else a limit pays for.

use filemap_core::address::page_table::PageTables;
use filemap_core::address::reverse_map::ReverseMap;
use filemap_core::cache::FolioRun;
use filemap_core::decision::Log;
use filemap_core::lru::direct::Direct;
use filemap_core::lru::lists::Shrunk;
use filemap_core::lru::{high, reclaim};
use filemap_core::page_cache::PageCache;
use filemap_core::rules::Rules;
use filemap_core::units::{FileId, PageCount};
use filemap_job::Machine;

use crate::charge::Charge;
use crate::flushes::Flushes;

/// The memory of a run.
#[derive(Debug)]
pub struct Memory<C> {
    /// What files have cached.
    pub cache: C,
    /// Who maps it.
    pub mappings: ReverseMap,
    /// Nodes of the cache's index, where the limit pays for the kernel's memory.
    charge: Option<Charge>,
    limit: Option<PageCount>,
    /// `memory.high`, where it is no limit and is repaid.
    high: Option<PageCount>,
    page_size: u64,
    rules: Rules,
    /// Pages of page tables of other processes than the one at work.
    pub other_tables: PageCount,
    /// Pages that no file backs: private copies, and what the program holds beside its files.
    anonymous: PageCount,
    /// Pages that are evicted and not free yet.
    freeing: PageCount,
    /// When the statistics of the lists are flushed.
    flushes: Flushes,
}

/// Reclaim under way.
#[derive(Debug)]
pub enum Reclaim {
    /// Of a memory cgroup, a batch at a time.
    Direct(Direct),
    /// Of the machine, all at once: so many pages that are to be evicted yet.
    OfMachine(PageCount),
}

impl<C: PageCache> Memory<C> {
    /// The memory of `machine` by `rules` for so many files, with an empty `cache`. `memory.high`
    /// is a limit like the others, unless it is made [`Memory::owing`].
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
            charge: machine.limit_is_cgroups().then(Charge::default),
            limit: machine.cache_limit,
            high: None,
            page_size: machine.arch.page_size,
            rules,
            other_tables: PageCount(0),
            anonymous: PageCount(0),
            freeing: PageCount(0),
            flushes,
        }
    }

    /// The same, where several tasks share it: what they charge above `memory.high` they owe.
    pub fn owing(self, machine: &Machine) -> Memory<C> {
        let Some((high, limit)) = machine.high() else { return self };
        Memory { charge: Some(Charge::default()), limit, high: Some(high), ..self }
    }

    /// Whether anything is ever reclaimed.
    pub fn is_limited(&self) -> bool {
        self.limit.is_some() || self.high.is_some()
    }

    /// `memory.high`, where it is no limit and is repaid.
    pub fn high(&self) -> Option<PageCount> {
        self.high
    }

    /// Whether more is charged than `memory.high`.
    pub fn is_over_high(&self, tables: &PageTables) -> bool {
        self.high.is_some_and(|high| self.used(tables) > high)
    }

    /// How long a task sleeps that owes so many pages, and repays in vain.
    pub fn delay_ns(&self, owed: PageCount, tables: &PageTables) -> u64 {
        self.high.map_or(0, |high| high::delay_ns(self.used(tables), high, owed))
    }

    /// Begins to reclaim at least `goal` pages, or what can be.
    pub fn begin_reclaim(&self, goal: PageCount, counts_unmapped: bool) -> Reclaim {
        if !self.is_cgroups() {
            return Reclaim::OfMachine(goal);
        }
        let direct = Direct::new(goal, self.page_size).by(&self.rules);
        Reclaim::Direct(direct.counting_unmapped(counts_unmapped))
    }

    /// Goes on with a reclaim, by a batch where it has them. `None`: enough is evicted, or what can
    /// be.
    pub fn reclaim_on(&mut self, reclaim: &mut Reclaim, log: &mut impl Log) -> Option<Shrunk> {
        match reclaim {
            Reclaim::Direct(direct) => direct.step(&mut self.cache, &self.mappings, log),
            Reclaim::OfMachine(goal) => {
                let goal = std::mem::take(goal);
                (goal > PageCount(0)).then(|| self.reclaim_of_machine(goal, log))
            }
        }
    }

    fn reclaim_of_machine(&mut self, goal: PageCount, log: &mut impl Log) -> Shrunk {
        if self.rules.reclaim_flushes_statistics {
            self.cache.flush_statistics();
        }
        let evicted = reclaim::reclaim(&mut self.cache, goal, self.page_size, &self.mappings, log);
        Shrunk { evicted, ..Shrunk::default() }
    }

    /// Flushes the statistics of the lists where that is due, at `now_ns` and after `begun`
    /// accesses.
    pub fn flush_if_due(&mut self, now_ns: u64, begun: u64) {
        if self.is_limited() && self.flushes.are_due(now_ns, begun) {
            self.cache.flush_statistics();
        }
    }

    /// So many pages that were evicted are not free yet.
    pub fn free_later(&mut self, pages: PageCount) {
        self.freeing += pages;
    }

    /// Whether pages that were evicted are not free yet.
    pub fn is_freeing(&self) -> bool {
        self.freeing > PageCount(0)
    }

    /// So many of them are free now.
    pub fn free(&mut self, pages: PageCount) {
        self.freeing -= pages;
    }

    /// Whether the limit is a memory cgroup's: each folio is charged to it by itself.
    pub fn is_cgroups(&self) -> bool {
        self.charge.is_some()
    }

    /// Whether the limit is the machine's own memory.
    pub fn is_machines(&self) -> bool {
        self.limit.is_some() && !self.is_cgroups()
    }

    /// How many more pages fit as it is.
    pub fn room(&self, tables: &PageTables) -> PageCount {
        let room = self.limit.map(|limit| limit.saturating_sub(self.used(tables)));
        room.unwrap_or(PageCount(u64::MAX))
    }

    /// How many pages have to go before `pages` more fit.
    pub fn missing(&self, pages: PageCount, tables: &PageTables) -> PageCount {
        self.limit.map_or(PageCount(0), |limit| (self.used(tables) + pages).saturating_sub(limit))
    }

    /// Adds absent folios of `file`, which are being read.
    #[inline(always)]
    pub fn add(&mut self, file: FileId, run: FolioRun) {
        self.cache.add(file, run);
        if let Some(charge) = &mut self.charge {
            charge.add(file, run);
        }
    }

    /// About how many bytes of memory the model takes for it.
    pub fn held_bytes(&self) -> u64 {
        self.cache.held_bytes() + self.charge.as_ref().map_or(0, Charge::held_bytes)
    }

    /// So many pages that no file backs take room from now on.
    pub fn hold(&mut self, pages: PageCount) {
        self.anonymous += pages;
    }

    /// So many pages that no file backs are gone.
    pub fn release(&mut self, pages: PageCount) {
        self.anonymous -= pages;
    }

    /// What counts against the limit.
    fn used(&self, tables: &PageTables) -> PageCount {
        let pages = tables.pages() + self.other_tables;
        let charged = |charge: &Charge| charge.pages(pages, &self.cache, self.page_size);
        let kernel = self.charge.as_ref().map_or(PageCount(0), charged);
        self.cache.inactive() + self.cache.active() + self.anonymous + self.freeing + kernel
    }
}
