//! The course of a program: of each file that matters what came in and what of it was used, the
//! counter of misses, and what its threads waited for.

mod data;

use std::collections::BTreeMap;

use filemap_core::decision::{Cause, Decision, Found, Log, Wait};
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::program::{Job, ProgramStep};

use super::counter::Course;
use super::history::{
    CausePages, History, INTERVALS, MAX_WINDOWS, Recorder, first_access, interval_of,
};
use super::origin::Origin;
use super::pages::Pages;
use super::program::reached;
use super::window::{LastWindow, origins};
pub use data::{FileHistory, ProgramHistory, ThreadWaits, WaitHistory};
use data::{MOST_FILES, MOST_THREADS};

/// Open file descriptions of these files whose counters are kept.
const MOST_OPENS: usize = 64;

/// What is waited for, in the order of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WaitedFor {
    Page(Origin),
    OtherFiles,
    Memory,
    Cpu,
    Phase,
    Lock,
}

impl WaitedFor {
    fn key(self) -> &'static str {
        match self {
            WaitedFor::Page(origin) => origin.key(),
            WaitedFor::OtherFiles => "other-files",
            WaitedFor::Memory => "memory",
            WaitedFor::Cpu => "cpu",
            WaitedFor::Phase => "phase",
            WaitedFor::Lock => "lock",
        }
    }
}

/// Reads the decision log of a program; [`ProgramRecorder::finish`] has its history.
pub struct ProgramRecorder<'a> {
    program: &'a Job,
    accesses: u64,
    intervals: u64,
    /// The number of the access at hand.
    access: u64,
    /// The first access behind the interval at hand.
    interval_end: u64,
    interval: u64,
    /// What is known of files that are drawn, by file.
    drawn: BTreeMap<usize, Drawn>,
    others: u64,
    /// The file that decisions are about, and the open file description that they go through.
    file: usize,
    open: u32,
    counters: BTreeMap<u32, Counter>,
    waits: BTreeMap<WaitedFor, Waits>,
}

struct Drawn {
    pages: Pages,
    window: Option<LastWindow>,
}

/// The counter of misses of one open file description.
struct Counter {
    value: u16,
    changes: u64,
    course: Course,
}

#[derive(Clone)]
struct Waits {
    intervals: Vec<u64>,
    threads: Vec<u64>,
}

impl<'a> ProgramRecorder<'a> {
    /// Of a run of `program`, which has not begun, and which will read as many pages of each file
    /// as `pages_read` says: a run before it has told.
    pub fn new(program: &'a Job, pages_read: &[u64]) -> Self {
        let accesses = program.steps().map(ProgramStep::accesses).fold(0, u64::saturating_add);
        let mut read: Vec<usize> = (0..program.files.len()).collect();
        let pages = |file: usize| pages_read.get(file).copied().unwrap_or(0);
        read.retain(|file| pages(*file) > 0);
        read.sort_by_key(|file| std::cmp::Reverse(pages(*file)));
        let shown = read.len().min(MOST_FILES);
        let others = (read.len() - shown) as u64;
        let windows = MAX_WINDOWS / shown.max(1);
        let slack = program.machine.read_ahead.0.saturating_mul(2) + LARGEST_FOLIO_PAGES;
        let drawn = read[..shown].iter().map(|&file| {
            let parts = reached(program, file);
            let (from, to) = parts.bounds();
            let from = PageIndex(from.0.saturating_sub(slack));
            let to = PageIndex((to.0.saturating_add(slack)).min(pages_of(program, file)).max(to.0));
            let recorder = Recorder::new(accesses, windows, from, to);
            (file, Drawn { pages: Pages::new(parts, Some(recorder)), window: None })
        });
        let intervals = accesses.clamp(1, INTERVALS);
        ProgramRecorder {
            accesses,
            intervals,
            access: 0,
            interval_end: first_access(1, accesses, intervals),
            interval: 0,
            drawn: drawn.collect(),
            others,
            file: 0,
            open: 0,
            counters: BTreeMap::new(),
            waits: BTreeMap::new(),
            program,
        }
    }

    /// The history, once the log has ended.
    pub fn finish(mut self) -> ProgramHistory {
        let page_bytes = self.program.page_size();
        let mut files: Vec<(u64, FileHistory)> = Vec::new();
        for (file, mut drawn) in std::mem::take(&mut self.drawn) {
            if let Some(recorder) = &mut drawn.pages.recorder {
                recorder.end();
            }
            drawn.pages.settle_rest();
            let recorder = drawn.pages.recorder.take().expect("it has one from the beginning");
            let history = recorder.finish(page_bytes, reached(self.program, file).bounds());
            let causes = drawn.pages.amounts.iter().map(|(origin, amount)| CausePages {
                cause: origin.key().to_string(),
                pages: amount.pages,
                again: amount.again,
            });
            let of_file = |open: &u32| self.program.opens[*open as usize].file == file;
            let own = self.counters.iter().filter(|(open, _)| of_file(open));
            let counter = own.max_by_key(|(open, counter)| (counter.changes, u32::MAX - **open));
            let counter = counter.filter(|(_, counter)| counter.changes > 0);
            let name = |open: u32| self.program.opens[open as usize].name.clone();
            let history = History {
                causes: Some(causes.collect()),
                mmap_miss: counter.map(|(_, counter)| counter.course.points().collect()),
                ..history
            };
            let read = history.read.iter().sum();
            let counter_of = counter.map(|(open, _)| name(*open));
            let name = self.program.files[file].name.clone();
            files.push((read, FileHistory { name, counter_of, history }));
        }
        files.sort_by_key(|(read, _)| std::cmp::Reverse(*read));
        let threads = self.program.threads.iter().take(MOST_THREADS).enumerate();
        let threads = threads.map(|(number, thread)| ThreadWaits {
            name: thread.name.clone(),
            ns: self.waits.values().map(|waits| waits.threads[number]).collect(),
        });
        ProgramHistory {
            accesses: self.accesses,
            files: files.into_iter().map(|(_, file)| file).collect(),
            other_files: self.others,
            threads: threads.collect(),
            waits: self
                .waits
                .iter()
                .map(|(waited_for, waits)| WaitHistory {
                    cause: waited_for.key().to_string(),
                    ns: waits.intervals.clone(),
                })
                .collect(),
        }
    }

    fn call(&mut self, by: Origin, start: PageIndex, pages: u64) {
        let access = self.access;
        if let Some(drawn) = self.drawn.get_mut(&self.file) {
            drawn.pages.brought.get_mut(by).calls += 1;
            if let Some(recorder) = &mut drawn.pages.recorder {
                recorder.call(by, start, pages, access);
            }
        }
    }

    /// The counter of the open file description at hand was seen.
    fn counted(&mut self, value: impl FnOnce(u16) -> u16) {
        if !self.drawn.contains_key(&self.file) {
            return;
        }
        let (access, accesses) = (self.access, self.accesses);
        let has_room = self.counters.len() < MOST_OPENS;
        if !has_room && !self.counters.contains_key(&self.open) {
            return;
        }
        let counter = self.counters.entry(self.open).or_insert_with(|| Counter {
            value: 0,
            changes: 0,
            course: Course::new(accesses),
        });
        let value = value(counter.value);
        if value != counter.value {
            counter.value = value;
            counter.changes += 1;
            counter.course.put(access, value);
        }
    }
}

/// Pages of the largest folio that may reach over the end of a mapping.
const LARGEST_FOLIO_PAGES: u64 = 512;

/// Pages of a file.
fn pages_of(program: &Job, file: usize) -> u64 {
    program.files[file].file.size_bytes.div_ceil(program.page_size())
}

impl Log for ProgramRecorder<'_> {
    fn record(&mut self, decision: Decision) {
        match decision {
            Decision::File(file) => self.file = file.number(),
            Decision::Readahead { cause, index, start, size, mmap_miss, .. } => {
                if let Some(drawn) = self.drawn.get_mut(&self.file) {
                    let end = start + size;
                    drawn.window = Some(LastWindow { cause, index, start, end });
                }
                self.call(Origin::of(cause), start, size.0);
                if !matches!(cause, Cause::WillNeed | Cause::Governor) {
                    self.counted(|_| mmap_miss);
                }
            }
            Decision::BasePages { start, size, .. } => {
                if let Some(drawn) = self.drawn.get_mut(&self.file)
                    && let Some(window) = &mut drawn.window
                {
                    window.reach(start, size);
                    drawn.pages.recorder.iter_mut().for_each(|of| of.reach(start, start + size));
                }
            }
            Decision::NoReadahead { index, mmap_miss } => {
                if let Some(drawn) = self.drawn.get_mut(&self.file) {
                    drawn.window = None;
                }
                self.call(Origin::Single, index, 1);
                self.counted(|_| mmap_miss);
            }
            Decision::Lookup { mmap_miss, .. }
            | Decision::Entered { found: Found { mmap_miss, .. }, .. } => {
                self.counted(|_| mmap_miss);
            }
            Decision::MapPages { credit, .. } if credit > 0 => {
                self.counted(|value| value.saturating_sub(credit.min(u16::MAX.into()) as u16));
            }
            Decision::Added { start, order, folios, .. } => {
                let end = start + PageCount(folios << order.0);
                let read_ahead = self.program.machine.read_ahead;
                let Some(drawn) = self.drawn.get_mut(&self.file) else { return };
                let parts = origins(drawn.window, (start, end), order.pages(), read_ahead);
                for (start, end, origin) in parts {
                    drawn.pages.add(start, end, origin);
                }
            }
            Decision::Evicted { start, pages } => {
                if let Some(drawn) = self.drawn.get_mut(&self.file) {
                    drawn.pages.evict(start, start + pages);
                }
            }
            _ => {}
        }
    }

    fn access(&mut self, number: u64) {
        self.access = number;
        if number < self.interval_end || self.interval + 1 >= self.intervals {
            return;
        }
        for drawn in self.drawn.values_mut() {
            drawn.pages.recorder.iter_mut().for_each(|recorder| recorder.accessed(number));
        }
        self.interval = interval_of(number, self.accesses, self.intervals);
        self.interval_end = first_access(self.interval + 1, self.accesses, self.intervals);
    }

    fn through(&mut self, open: u32) {
        self.open = open;
    }

    fn accessed(&mut self, start: PageIndex, pages: PageCount) {
        let Some(drawn) = self.drawn.get_mut(&self.file) else { return };
        for index in start.0..start.0 + pages.0 {
            drawn.pages.want(PageIndex(index));
        }
    }

    fn waited(&mut self, task: usize, wait: Wait, ns: u64) {
        let waited_for = match wait {
            Wait::Page(file, index) => match self.drawn.get(&file.number()) {
                Some(drawn) => WaitedFor::Page(drawn.pages.by(index)),
                None => WaitedFor::OtherFiles,
            },
            Wait::Room => WaitedFor::Memory,
            Wait::Cpu => WaitedFor::Cpu,
            Wait::Step => WaitedFor::Phase,
            Wait::MmapRead | Wait::MmapWrite | Wait::VmaFaults => WaitedFor::Lock,
        };
        let (intervals, threads) = (self.intervals as usize, self.program.threads.len());
        let waits = self
            .waits
            .entry(waited_for)
            .or_insert_with(|| Waits { intervals: vec![0; intervals], threads: vec![0; threads] });
        waits.intervals[self.interval as usize] += ns;
        waits.threads[task] += ns;
    }
}
