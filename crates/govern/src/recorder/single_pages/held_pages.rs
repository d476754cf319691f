//! The mapped pages of a process while one of its threads is held, and dropping them.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::ops::Range;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_attach::tracepoints::TraceEvent;
use filemap_attach::{EventSource, MappedRange, drain_lru_batches, mapped_pages, now_ns};
use filemap_kernel::page_size;
use filemap_kernel::residency::{self, CacheStat};
use rustix::fs::{Advice, fadvise};

/// Pause between two attempts to drop a file: pages under I/O arrive within milliseconds.
pub const DROP_INTERVAL: Duration = Duration::from_millis(1);

/// The pages that a fault maps at most: the default of fault-around.
const FAULT_AROUND_PAGES: u64 = 16;

/// Dropping a file ends after this many consecutive attempts without progress.
const MAX_ATTEMPTS_WITHOUT_PROGRESS: u32 = 5;

/// Maximum total time of the attempts, during which a thread is held.
const DROP_TIMEOUT: Duration = Duration::from_millis(100);

/// The state of a mapping when a thread of its process was held.
pub struct HeldPages {
    at_ns: u64,
    /// Address ranges with page table entries; `None` where the kernel cannot report them.
    mapped: Option<Vec<Range<u64>>>,
    more_arrive: OnceLock<bool>,
    /// Address ranges that are still mapped after all were to be unmapped, where the kernel reports
    /// them.
    stayed: OnceLock<Option<Vec<Range<u64>>>>,
}

impl HeldPages {
    /// Reads the page table of a mapping.
    pub fn read(pid: u32, range: &MappedRange) -> HeldPages {
        let mapped = mapped_pages(pid, range);
        let (more_arrive, stayed) = (OnceLock::new(), OnceLock::new());
        HeldPages { at_ns: now_ns(), mapped, more_arrive, stayed }
    }

    /// Drops the file of the mapping from the page cache until no more pages arrive.
    pub fn drop_file(&self, file: &File) {
        self.more_arrive.get_or_init(|| drop_arriving(file));
    }

    /// Reads which pages could not be unmapped.
    pub fn read_stayed(&self, pid: u32, range: &MappedRange) {
        self.stayed.get_or_init(|| mapped_pages(pid, range));
    }

    /// The pages that could not be unmapped: their touches are invisible.
    pub fn stayed_pages(&self) -> Option<UnfaultedPages> {
        let ranges = self.stayed.get().cloned().flatten()?;
        Some(UnfaultedPages { at_ns: self.at_ns, ranges })
    }

    /// Whether pages may still have arrived after [`HeldPages::drop_file`].
    pub fn more_arrive(&self) -> bool {
        self.more_arrive.get().copied().unwrap_or_default()
    }

    /// The pages that were mapped without a fault of their own since `event`: touches of them are
    /// invisible. `None` where the page table could not be read.
    pub fn unfaulted_pages(
        &self,
        source: &EventSource,
        event: &TraceEvent,
        range: &MappedRange,
    ) -> Option<UnfaultedPages> {
        let faulted = source.faulted_pages(event.pid, range, event.at_ns, self.at_ns);
        let page_bytes = page_size();
        let runs = self.mapped.as_ref()?.iter();
        let pages = runs.flat_map(|run| run.start / page_bytes..run.end / page_bytes);
        let ranges = page_ranges(pages.filter(|page| !faulted.contains(page)));
        Some(UnfaultedPages { at_ns: self.at_ns, ranges })
    }
}

/// Pages that had a page table entry at some time without a fault of their own.
pub struct UnfaultedPages {
    /// When the page table was read.
    pub at_ns: u64,
    /// Their address ranges, in order.
    pub ranges: Vec<Range<u64>>,
}

impl UnfaultedPages {
    /// The pages that faults on the `faulted` ones can have mapped around them, where the page
    /// table of the mapping `range`, made at `mapped_ns`, could not be read.
    pub fn around(faulted: &HashSet<u64>, range: &MappedRange, mapped_ns: u64) -> UnfaultedPages {
        let page_bytes = page_size();
        let first = |page: &u64| page - page % FAULT_AROUND_PAGES;
        let windows: BTreeSet<u64> = faulted.iter().map(first).collect();
        let pages = windows.into_iter().flat_map(|first| first..first + FAULT_AROUND_PAGES);
        let pages =
            pages.filter(|page| !faulted.contains(page) && range.contains(page * page_bytes));
        UnfaultedPages { at_ns: mapped_ns + 1, ranges: page_ranges(pages) }
    }

    /// All pages of the mapping `range`, made at `mapped_ns`.
    pub fn all(range: &MappedRange, mapped_ns: u64) -> UnfaultedPages {
        let whole = range.address..range.end();
        UnfaultedPages { at_ns: mapped_ns + 1, ranges: vec![whole] }
    }

    /// These pages and `others`.
    pub fn join(self, others: UnfaultedPages) -> UnfaultedPages {
        let page_bytes = page_size();
        let ranges = self.ranges.into_iter().chain(others.ranges);
        let pages = ranges.flat_map(|range| range.start / page_bytes..range.end / page_bytes);
        let pages: BTreeSet<u64> = pages.collect();
        UnfaultedPages { at_ns: self.at_ns, ranges: page_ranges(pages.into_iter()) }
    }

    /// Their number.
    pub fn count(&self) -> u64 {
        count_pages(&self.ranges)
    }
}

/// The address ranges of `pages`, which are in order.
fn page_ranges(pages: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
    let page_bytes = page_size();
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for page in pages {
        match ranges.last_mut() {
            Some(last) if last.end == page * page_bytes => last.end += page_bytes,
            _ => ranges.push(page * page_bytes..(page + 1) * page_bytes),
        }
    }
    ranges
}

/// The number of pages in address ranges.
fn count_pages(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| (range.end - range.start) / page_size()).sum()
}

/// Drops a file from the page cache while its pages still arrive from the disk. Returns whether
/// more may arrive.
fn drop_arriving(file: &File) -> bool {
    let (start, mut fewest, mut without_progress) = (Instant::now(), u64::MAX, 0);
    while without_progress < MAX_ATTEMPTS_WITHOUT_PROGRESS && start.elapsed() < DROP_TIMEOUT {
        let _ = fadvise(file, 0, None, Advice::DontNeed);
        drain_lru_batches();
        // cachestat(2) is refused to users who neither own the file nor may write to it.
        let cached = CacheStat::query(file, ..).map_or(u64::MAX, |stat| stat.cached);
        if cached == 0 {
            return false;
        }
        without_progress = if cached < fewest { 0 } else { without_progress + 1 };
        fewest = fewest.min(cached);
        sleep(DROP_INTERVAL);
    }
    pages_under_io(file).is_some_and(|pages| pages > 0)
}

/// The number of cached pages that are not up to date yet. `None` where the kernel does not say.
fn pages_under_io(file: &File) -> Option<u64> {
    let cached = CacheStat::query(file, ..).ok()?.cached;
    let pages = file.metadata().ok()?.len().div_ceil(page_size());
    let resident = residency::resident_pages(file, pages).ok()?.len();
    Some(cached.saturating_sub(resident))
}
