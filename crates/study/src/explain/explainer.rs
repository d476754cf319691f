//! Builds an explanation from the decision log of a job as it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use filemap_core::decision::{Cause, Decision, Log, MissChange, ReadaheadSnapshot, TaskWait};
use filemap_core::readahead::miss;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::Job;
use filemap_job::program::ProgramStep;

use super::counter::{Counter, CounterCurve, CounterVisibility};
use super::history::{
    FileHistory, History, INTERVALS, MAX_FILES, MAX_WINDOWS, RunHistory, first_access, interval_of,
};
use super::map::FileMap;
use super::origin::{LastWindow, Origin, PageTotal, PerOrigin, SourceTotal, split_by_origin};
use super::page_history::PageHistory;
use super::ranges::FileRanges;
use super::recorder::HistoryRecorder;
use super::waits::WaitRecorder;

/// Maximum number of cells in all maps of an [`Explanation`] together.
const MAX_MAP_CELLS: u64 = 512;

/// Maximum number of open file descriptions whose counter is recorded along the run.
const MAX_CURVES: usize = 64;

/// Size of the largest folio that may extend beyond the mapped range, in pages.
const MAX_FOLIO_PAGES: u64 = 512;

/// The explanation of a job, derived from its decision log.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// By file of the job.
    pub files: Vec<FileExplanation>,
    /// Pages read by faults, advice and the governor, by mapping of the job.
    pub mappings: Vec<PerOrigin<SourceTotal>>,
    /// Pages read by `read(2)` and `posix_fadvise(2)`, by open file description.
    pub opens: Vec<PerOrigin<SourceTotal>>,
    /// `mmap_miss` of each open file description that entered readahead.
    pub counters: BTreeMap<usize, Counter>,
    /// Accesses to pages that the log does not show to be cached: 0 for a complete log.
    pub absent_accesses: u64,
    /// Reads and waits along the run.
    pub history: RunHistory,
}

/// The explanation of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileExplanation {
    /// Pages that entered the cache, by cause; a page counts each time.
    pub totals: PerOrigin<PageTotal>,
    /// The same pages by the cause that read them.
    pub sources: PerOrigin<SourceTotal>,
    /// Pages that left the cache, as far as the log shows.
    pub evicted: u64,
    /// Pages read, accessed and evicted; only for files with a history.
    pub map: Option<FileMap>,
}

impl Explanation {
    /// Pages of all files by cause.
    pub fn totals(&self) -> PerOrigin<PageTotal> {
        let mut totals = PerOrigin::default();
        self.files.iter().for_each(|file| totals.add(&file.totals, PageTotal::add));
        totals
    }

    /// Pages of all files by the cause that read them.
    pub fn sources(&self) -> PerOrigin<SourceTotal> {
        let mut sources = PerOrigin::default();
        self.files.iter().for_each(|file| sources.add(&file.sources, SourceTotal::add));
        sources
    }

    /// Pages that entered the cache.
    pub fn pages_read(&self) -> u64 {
        self.files.iter().map(FileExplanation::pages_read).sum()
    }
}

impl FileExplanation {
    /// Pages of the file that entered the cache.
    pub fn pages_read(&self) -> u64 {
        self.totals.iter().map(|(_, total)| total.pages).sum()
    }
}

/// A log that derives an explanation; [`Explainer::finish`] returns it.
pub struct Explainer<'a> {
    job: &'a Job,
    accesses: u64,
    visibility: CounterVisibility,
    files: Vec<FileState>,
    /// Number of files that are read but have no history.
    other_files: u64,
    /// The file, open file description and mapping that the next decisions are about.
    file: usize,
    open: usize,
    mapping: Option<usize>,
    /// Number of the access that decisions belong to.
    number: u64,
    /// The access in progress, in a single-threaded job.
    current: Option<CurrentAccess>,
    /// The current interval, and the first access after it.
    interval: u64,
    interval_end: u64,
    counters: BTreeMap<usize, Counter>,
    /// Accesses whose fault missed the page cache and is not served yet.
    missed: BTreeSet<u64>,
    waits: WaitRecorder,
    by_mapping: Vec<PerOrigin<SourceTotal>>,
    by_open: Vec<PerOrigin<SourceTotal>>,
}

struct FileState {
    pages: PageHistory,
    window: Option<LastWindow>,
}

/// An access in progress to pages of the cache.
#[derive(Clone, Copy, Debug)]
struct CurrentAccess {
    file: usize,
    /// Pages before this one have been accessed.
    next: PageIndex,
    first: PageIndex,
    end: PageIndex,
}

impl<'a> Explainer<'a> {
    /// An explainer for a run of `job`. `pages_read` has the number of pages that a run reads from
    /// each file, if known: the files with the most get a history.
    pub fn new(job: &'a Job, visibility: CounterVisibility, pages_read: &[u64]) -> Self {
        let accesses = job.steps().map(ProgramStep::accesses).fold(0, u64::saturating_add);
        let pages = |file: usize| pages_read.get(file).copied().unwrap_or(0);
        let mut read: Vec<usize> = (0..job.files.len()).collect();
        read.retain(|&file| pages(file) > 0 || job.files.len() == 1);
        read.sort_by_key(|&file| std::cmp::Reverse(pages(file)));
        let drawn = &read[..read.len().min(MAX_FILES)];
        let file_state = |file: usize| {
            let ranges = FileRanges::new(job, file);
            let max_windows = MAX_WINDOWS / drawn.len().max(1);
            let recorder =
                drawn.contains(&file).then(|| recorder(job, file, &ranges, accesses, max_windows));
            FileState { pages: PageHistory::new(ranges, recorder), window: None }
        };
        Explainer {
            job,
            accesses,
            visibility,
            files: (0..job.files.len()).map(file_state).collect(),
            other_files: (read.len() - drawn.len()) as u64,
            file: 0,
            open: 0,
            mapping: None,
            number: 0,
            current: None,
            interval: 0,
            interval_end: first_access(1, accesses, accesses.clamp(1, INTERVALS)),
            counters: BTreeMap::new(),
            missed: BTreeSet::new(),
            waits: WaitRecorder::new(accesses, job.threads.len()),
            by_mapping: vec![PerOrigin::default(); job.mappings.len()],
            by_open: vec![PerOrigin::default(); job.opens.len()],
        }
    }

    /// The explanation, once the log has ended.
    pub fn finish(mut self) -> Explanation {
        self.end_access();
        for FileState { pages, .. } in &mut self.files {
            pages.recorder.iter_mut().for_each(HistoryRecorder::end);
            pages.settle_rest();
        }
        let history = self.history();
        let cells = MAX_MAP_CELLS / history.files.len().max(1) as u64;
        let has_history =
            |file: usize| history.files.iter().any(|drawn| drawn.name == self.job.files[file].name);
        let explain_file = |(file, state): (usize, &FileState)| {
            let pages = &state.pages;
            FileExplanation {
                totals: pages.totals,
                sources: pages.sources,
                evicted: pages.evicted,
                map: has_history(file).then(|| FileMap::new(pages, &pages.mapped, cells)),
            }
        };
        Explanation {
            files: self.files.iter().enumerate().map(explain_file).collect(),
            absent_accesses: self.files.iter().map(|file| file.pages.absent_touches).sum(),
            mappings: self.by_mapping,
            opens: self.by_open,
            counters: self.counters,
            history,
        }
    }

    /// The history of the run, once every page is settled.
    fn history(&mut self) -> RunHistory {
        let page_bytes = self.job.page_size();
        let mut files: Vec<FileHistory> = Vec::new();
        for (file, FileState { pages, .. }) in self.files.iter_mut().enumerate() {
            let Some(recorder) = pages.recorder.take() else { continue };
            let own = self.counters.iter().filter(|(open, _)| self.job.opens[**open].file == file);
            let most = own.max_by_key(|(open, counter)| (counter.changes, usize::MAX - **open));
            let counter = most.filter(|(_, counter)| counter.changes > 0);
            let history = History {
                causes: Some(super::origin::CausePages::from_totals(&pages.totals, page_bytes)),
                mmap_miss: counter.map(|(_, counter)| counter.points()),
                mmap_miss_threshold: counter.map(|(_, counter)| counter.threshold),
                ..recorder.finish(page_bytes, pages.mapped.bounds())
            };
            let name = self.job.files[file].name.clone();
            let counter_of = counter.map(|(open, _)| self.job.opens[*open].name.clone());
            files.push(FileHistory { name, counter_of, history });
        }
        files.sort_by_key(|file| std::cmp::Reverse(file.history.read.iter().sum::<u64>()));
        let waits = mem::replace(&mut self.waits, WaitRecorder::new(0, 0));
        let (threads, waits) = waits.finish(self.job);
        let (accesses, other_files) = (self.accesses, self.other_files);
        RunHistory { accesses, files, other_files, waits, threads }
    }

    /// Whether page `index` lies in the last window requested for `file`.
    pub(super) fn is_in_window(&self, file: usize, index: PageIndex) -> bool {
        self.files[file].window.is_some_and(|window| window.holds(index) || window.end == index)
    }

    /// Records that the current access has accessed its pages before `index`.
    fn access_up_to(&mut self, index: PageIndex) {
        let file = self.file;
        let current = self.current.as_mut();
        let Some(access) = current.filter(|access| access.file == file && index < access.end)
        else {
            return;
        };
        let next = access.next.max(index);
        let from = mem::replace(&mut access.next, next);
        let pages = &mut self.files[file].pages;
        (from.0..index.0).for_each(|index| pages.touch(PageIndex(index)));
    }

    /// Ends the current access, whose decisions are complete.
    fn end_access(&mut self) {
        let Some(CurrentAccess { file, next, end, .. }) = self.current.take() else { return };
        let pages = &mut self.files[file].pages;
        (next.0..end.0).for_each(|index| pages.touch(PageIndex(index)));
        self.advance(self.number + 1);
    }

    /// Records that the first `done` accesses have ended.
    fn advance(&mut self, done: u64) {
        if done < self.interval_end {
            return;
        }
        for FileState { pages, .. } in &mut self.files {
            pages.recorder.iter_mut().for_each(|recorder| recorder.advance(done));
        }
        let intervals = self.accesses.clamp(1, INTERVALS);
        self.interval = interval_of(done, self.accesses, intervals);
        // Repeated steps may make more accesses than were known in advance; the excess belongs to
        // the last interval.
        self.interval_end = if self.interval + 1 < intervals {
            first_access(self.interval + 1, self.accesses, intervals)
        } else {
            u64::MAX
        };
    }

    /// The second count of current reads: by mapping for faults and advice, else by open file.
    fn source(&mut self) -> &mut PerOrigin<SourceTotal> {
        match self.mapping {
            Some(mapping) => &mut self.by_mapping[mapping],
            None => &mut self.by_open[self.open],
        }
    }

    /// The counter of the current open file description, the number of the access, and whether its
    /// fault missed.
    fn counter(&mut self) -> (&mut Counter, u64, bool) {
        let (visibility, accesses) = (self.visibility, self.accesses);
        let (rules, known) = (&self.job.rules, self.counters.len());
        let new = || {
            let curve = (known < MAX_CURVES).then(|| CounterCurve::new(accesses));
            Counter::new(visibility, miss::threshold(rules), curve)
        };
        let has_missed = self.missed.contains(&self.number);
        (self.counters.entry(self.open).or_insert_with(new), self.number, has_missed)
    }

    /// Records the request of a window, or of a single page.
    fn call(&mut self, window: Option<LastWindow>, by: Origin, start: PageIndex, size: PageCount) {
        self.source().get_mut(by).calls += 1;
        let FileState { pages, window: last } = &mut self.files[self.file];
        *last = window;
        pages.sources.get_mut(by).calls += 1;
        if let Some(recorder) = &mut pages.recorder {
            recorder.call(by, start, size.0, self.number);
        }
    }

    /// Records that folios of `folio_pages` pages each were added.
    fn add(&mut self, start: PageIndex, end: PageIndex, folio_pages: u64) {
        let read_ahead = self.job.machine.read_ahead;
        let FileState { pages, window } = &mut self.files[self.file];
        let parts = split_by_origin(*window, (start, end), folio_pages, read_ahead);
        for (start, end, origin) in parts {
            pages.add(start, end, origin);
        }
        let source = self.source();
        for (start, end, origin) in parts {
            source.get_mut(origin).pages += (end - start).0;
        }
    }

    fn apply(&mut self, decision: Decision) {
        match decision {
            Decision::Lookup { hit, mmap_miss, .. } => {
                let (counter, access, _) = self.counter();
                counter.show(mmap_miss, access);
                if !hit {
                    self.missed.insert(access);
                }
            }
            Decision::Entered { found: ReadaheadSnapshot { mmap_miss, .. }, .. } => {
                let (counter, access, _) = self.counter();
                counter.enter(mmap_miss, access);
            }
            Decision::Readahead { cause, index, start, size, mmap_miss, .. } => {
                if matches!(cause, Cause::WillNeed | Cause::Governor) {
                    // Advice is not an access.
                    self.end_access();
                }
                let (counter, access, _) = self.counter();
                counter.show(mmap_miss, access);
                let window = LastWindow { cause, index, start, end: start + size };
                self.call(Some(window), Origin::from_cause(cause), start, size);
            }
            Decision::NoReadahead { index, mmap_miss } => {
                let (counter, access, _) = self.counter();
                counter.show(mmap_miss, access);
                counter.read_alone();
                self.call(None, Origin::Single, index, PageCount(1));
            }
            Decision::BasePages { start, size, .. } => {
                let FileState { pages, window } = &mut self.files[self.file];
                if let Some(window) = window {
                    window.extend(start, size);
                    let end = start + size;
                    pages.recorder.iter_mut().for_each(|recorder| recorder.extend(start, end));
                }
            }
            Decision::Added { start, order, folios, .. } => {
                self.add(start, start + PageCount(folios << order.0), order.pages());
            }
            Decision::Served { index, .. } => {
                self.missed.remove(&self.number);
                // Advice takes its own faults.
                let is_current =
                    |access: CurrentAccess| access.first <= index && index < access.end;
                if self.current.is_some_and(is_current) {
                    self.end_access();
                }
            }
            Decision::Copied { index } => self.files[self.file].pages.touch(index),
            Decision::Evicted { start, pages } => {
                self.files[self.file].pages.evict(start, start + pages);
            }
            _ => {}
        }
    }
}

/// A recorder for a file with reads in `ranges`. Windows may extend beyond them by the size of a
/// window or a folio.
fn recorder(
    job: &Job,
    file: usize,
    ranges: &FileRanges,
    accesses: u64,
    max_windows: usize,
) -> HistoryRecorder {
    let (from, to) = ranges.bounds();
    let slack = job.machine.read_ahead.0.saturating_mul(2) + MAX_FOLIO_PAGES;
    let from = PageIndex(from.0.saturating_sub(slack));
    let to = PageIndex(to.0.saturating_add(slack).min(job.file_pages(file).0).max(to.0));
    HistoryRecorder::new(accesses, max_windows, from, to)
}

impl Log for Explainer<'_> {
    fn record(&mut self, decision: Decision) {
        match decision {
            Decision::File { file } => {
                self.file = file.number();
                return;
            }
            Decision::Readahead { index, .. }
            | Decision::NoReadahead { index, .. }
            | Decision::Entered { found: ReadaheadSnapshot { index, .. }, .. } => {
                self.access_up_to(index)
            }
            _ => {}
        }
        self.apply(decision);
    }

    fn access(&mut self, number: u64) {
        // Still the current access.
        if number == self.number {
            return;
        }
        self.end_access();
        self.number = number;
        self.advance(number);
        self.waits.interval = self.interval;
    }

    fn through(&mut self, open: u32) {
        self.open = open as usize;
    }

    fn mapping(&mut self, mapping: Option<usize>) {
        self.mapping = mapping;
        if let Some(mapping) = mapping {
            self.open = self.job.mappings[mapping].open;
        }
    }

    fn mmap_miss_changed(&mut self, change: MissChange) {
        let (counter, access, has_missed) = self.counter();
        counter.change(change, has_missed, access);
    }

    fn describe_access(&mut self, start: PageIndex, pages: PageCount) {
        let (file, end) = (self.file, start + pages);
        // Accesses of several threads overlap.
        if self.job.threads.len() == 1 {
            self.end_access();
            self.current = Some(CurrentAccess { file, next: start, first: start, end });
        } else {
            let pages = &mut self.files[file].pages;
            (start.0..end.0).for_each(|index| pages.request(PageIndex(index)));
        }
    }

    fn waited(&mut self, task: usize, wait: TaskWait, from_ns: u64, until_ns: u64) {
        let origin = match wait {
            TaskWait::Page(file, index) => {
                let pages = &self.files[file.number()].pages;
                pages.recorder.is_some().then(|| pages.origin(index))
            }
            _ => None,
        };
        self.waits.add(task, wait, origin, until_ns - from_ns);
    }
}
