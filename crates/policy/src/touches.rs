//! What a program touched of a file, in a bounded size: runs of pages in order, and blocks by
//! region. It is all that the governor remembers of a file.
//!
//! A page fault maps the cached pages around it too, so in a mapping that the kernel reads ahead
//! for, a program's touches are seen once per block of [`BLOCK_PAGES`] pages. [`TouchHistory`]
//! estimates the pages from how often a run goes on into the next block.

use std::collections::BTreeMap;

use crate::reads::PageRange;
use crate::region::{AROUND_PAGES, REGION_PAGES};

/// Pages of a block: the pages that one fault maps if they are cached.
pub const BLOCK_PAGES: u64 = AROUND_PAGES;

/// Blocks of a region of 2 MiB.
pub const REGION_BLOCKS: u32 = (REGION_PAGES / BLOCK_PAGES) as u32;

/// Maximum runs kept in order; later ones are only counted.
pub const MAX_RUNS: usize = 32_768;

/// Maximum regions of a history: 32 GiB of a file. Later ones are left out.
pub const MAX_REGIONS: usize = 16_384;

/// Runs that may go on at the same time.
const MAX_OPEN_RUNS: usize = 16;

/// Maximum threads that are counted.
const MAX_THREADS: usize = 64;

/// A run from this many blocks on continues with any page of the next block.
const MIN_LOOSE_BLOCKS: u64 = 3;

/// Pages touched one after another, towards the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TouchRun {
    /// Its first page.
    pub first: u64,
    /// Pages from the first to the last one that is known to be touched.
    pub pages: u64,
}

impl TouchRun {
    /// How often it went on into the next block.
    #[must_use]
    pub const fn crossings(self) -> u64 {
        let last = self.first.saturating_add(self.pages.saturating_sub(1));
        last / BLOCK_PAGES - self.first / BLOCK_PAGES
    }
}

/// The touched blocks of a region of 512 pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TouchedRegion {
    /// Number of the region: its first page divided by 512.
    pub number: u64,
    /// A bit per block.
    pub blocks: u32,
}

impl TouchedRegion {
    /// Its pages.
    #[must_use]
    pub const fn pages(self) -> PageRange {
        let first = self.number.saturating_mul(REGION_PAGES);
        PageRange { first, end: first.saturating_add(REGION_PAGES) }
    }
}

/// What a program touched of a file from when it was mapped until it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TouchHistory {
    /// Each touched page is in a run. Otherwise a block is seen once, and pages are estimated.
    pub is_exact: bool,
    /// The program advised its mapping MADV_RANDOM itself.
    pub is_random: bool,
    /// The file was cached before it was touched, so that readahead had nothing to gain.
    pub is_cached: bool,
    /// Threads that touched the file, as if all of them touched as often as the busiest one.
    pub threads: u64,
    /// The first runs, in order of their first touch.
    pub runs: Vec<TouchRun>,
    /// All runs.
    pub total_runs: u64,
    /// The touched regions in order of their first touch.
    pub regions: Vec<TouchedRegion>,
}

impl TouchHistory {
    /// Number of touched blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.regions.iter().map(|region| u64::from(region.blocks.count_ones())).sum()
    }

    /// Estimated length in thousandths of a page of the runs that stay in one block or reach the
    /// next one. A run of `n` pages that begins anywhere in a block reaches the next one in `n - 1`
    /// of 16 cases.
    #[must_use]
    pub fn short_run_milli_pages(&self) -> u64 {
        let short = self.runs.iter().map(|run| run.crossings()).filter(|count| *count <= 1);
        let (count, crossings) =
            short.fold((0_u64, 0_u64), |(count, all), crossings| (count + 1, all + crossings));
        1000 + (crossings * BLOCK_PAGES * 1000).checked_div(count).unwrap_or(0)
    }

    /// Estimated pages of `run`, in thousandths of a page.
    #[must_use]
    pub fn milli_pages(&self, run: TouchRun, short_milli_pages: u64) -> u64 {
        match run.crossings() {
            _ if self.is_exact => run.pages.saturating_mul(1000),
            0 | 1 => short_milli_pages,
            crossings => (1 + crossings.saturating_mul(BLOCK_PAGES)).saturating_mul(1000),
        }
    }
}

/// Collects the history of a file.
#[derive(Clone, Debug)]
pub struct TouchCollector {
    history: TouchHistory,
    /// Indexes of the runs that may go on, the last continued first.
    open: Vec<usize>,
    /// Index in the history's regions, by number.
    regions: BTreeMap<u64, usize>,
    /// Touches by thread.
    threads: Vec<(u64, u64)>,
    touches: u64,
}

impl TouchCollector {
    /// A collector. `is_exact`: the pages are touched one by one, since none is read ahead of them.
    #[must_use]
    pub fn new(is_exact: bool, is_random: bool) -> TouchCollector {
        TouchCollector {
            history: TouchHistory { is_exact, is_random, ..TouchHistory::default() },
            open: Vec::new(),
            regions: BTreeMap::new(),
            threads: Vec::new(),
            touches: 0,
        }
    }

    /// The program advised its mapping MADV_RANDOM itself, so that each page is touched alone.
    pub const fn set_random(&mut self) {
        (self.history.is_exact, self.history.is_random) = (true, true);
    }

    /// Number of touches seen.
    #[must_use]
    pub const fn touches(&self) -> u64 {
        self.touches
    }

    /// Records that `thread` touched `page` for the first time.
    pub fn on_touch(&mut self, page: u64, thread: u64) {
        self.touches += 1;
        let has_room = self.threads.len() < MAX_THREADS;
        match self.threads.iter_mut().find(|(own, _)| *own == thread) {
            Some((_, touches)) => *touches += 1,
            None if has_room => self.threads.push((thread, 1)),
            None => {}
        }
        self.add_block(page);
        let runs = &mut self.history.runs;
        let next = self.open.iter().position(|&index| continues(runs[index], page));
        if let Some(at) = next {
            let index = self.open.remove(at);
            let end = runs[index].first.saturating_add(runs[index].pages);
            runs[index].pages = (page - runs[index].first).saturating_add(1);
            self.open.insert(0, index);
            // The blocks between were mapped with the last page.
            let between = (end / BLOCK_PAGES..page / BLOCK_PAGES).map(|block| block * BLOCK_PAGES);
            between.for_each(|page| self.add_block(page));
            return;
        }
        self.history.total_runs += 1;
        if runs.len() < MAX_RUNS {
            self.open.truncate(MAX_OPEN_RUNS - 1);
            self.open.insert(0, runs.len());
            runs.push(TouchRun { first: page, pages: 1 });
        }
    }

    fn add_block(&mut self, page: u64) {
        let number = page / REGION_PAGES;
        let bit = 1_u32 << (page % REGION_PAGES / BLOCK_PAGES);
        if let Some(&index) = self.regions.get(&number) {
            self.history.regions[index].blocks |= bit;
        } else if self.regions.len() < MAX_REGIONS {
            self.regions.insert(number, self.history.regions.len());
            self.history.regions.push(TouchedRegion { number, blocks: bit });
        }
    }

    /// The history so far.
    #[must_use]
    pub fn history(&self) -> TouchHistory {
        let busiest = self.threads.iter().map(|(_, touches)| *touches).max().unwrap_or(1);
        let all: u64 = self.threads.iter().map(|(_, touches)| *touches).sum();
        TouchHistory { threads: (all / busiest.max(1)).max(1), ..self.history.clone() }
    }
}

/// Whether a touch of `page` continues `run`: it is the next page, or the first one of the next
/// block or folio, as the pages between were mapped with the last one.
fn continues(run: TouchRun, page: u64) -> bool {
    let end = run.first.saturating_add(run.pages);
    let Some(gap) = page.checked_sub(end) else { return false };
    // A large folio is mapped as a whole too: the next touch is the first page of the next one.
    let unit = 1_u64 << page.trailing_zeros().min(REGION_PAGES.ilog2());
    let next_block = end.next_multiple_of(BLOCK_PAGES);
    let is_loose = run.crossings() + 1 >= MIN_LOOSE_BLOCKS;
    gap == 0
        || unit >= BLOCK_PAGES && gap < unit
        || is_loose && page < next_block.saturating_add(BLOCK_PAGES)
}
