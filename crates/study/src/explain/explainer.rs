//! Reads the decision log of a job as it comes.

use std::collections::BTreeMap;
use std::mem;

use filemap_core::decision::{Cause, Decision, Found, Log, Wait};
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::Job;
use filemap_job::program::ProgramStep;

use super::counter::{Counter, Sight};
use super::courses::{Courses, FileHistory, MOST_FILES, ProgramHistory};
use super::explanation::Explanation;
use super::followed::{Followed, recorder};
use super::history::{History, INTERVALS, MAX_WINDOWS, first_access, interval_of};
use super::map::Map;
use super::open_counters::OpenCounters;
use super::origin::{Amount, Brought, CausePages, Origin, PerOrigin};
use super::pages::Pages;
use super::parts::Parts;
use super::recorder::Recorder;
use super::through::{Through, steps};
use super::waits::Waits;
use super::window::{LastWindow, origins};

/// Cells of the map of an [`Explanation`].
const MAP_CELLS: u64 = 512;

/// Reads the decision log of a job; [`Explainer::finish`] has the explanation.
pub struct Explainer<'a> {
    job: &'a Job,
    accesses: u64,
    /// What is known of each file that is followed, by file.
    files: BTreeMap<usize, Followed>,
    /// Other files of which something is read.
    others: u64,
    /// The file that decisions are about.
    file: usize,
    /// The access that decisions belong to, and how many came before them.
    number: u64,
    done: u64,
    /// The access at hand, of a job of one thread.
    at_hand: Option<AtHand>,
    /// The first access of the interval after the one at hand, and the number of that.
    interval_end: u64,
    interval: u64,
    counter: Option<Counter>,
    opens: OpenCounters,
    waits: Option<Waits>,
    by_mapping: Vec<PerOrigin<Brought>>,
    by_open: Vec<PerOrigin<Brought>>,
    /// The accesses that each step ends before, of a job of one thread.
    steps: Vec<(u64, Option<Through>)>,
}

/// An access to pages of the cache that goes on.
#[derive(Clone, Copy, Debug)]
struct AtHand {
    file: usize,
    /// Pages before this one are accessed already.
    next: PageIndex,
    first: PageIndex,
    end: PageIndex,
    through: Option<Through>,
}

impl<'a> Explainer<'a> {
    /// An explainer of a run of `job` that has not begun, with the course of a job of flags.
    pub fn new(job: &'a Job, sight: Sight) -> Self {
        let is_of_flags = job.of_flags.is_some();
        let follow = |file| {
            let parts = if is_of_flags { Parts::of(job) } else { Parts::reached(job, file) };
            let recorder = is_of_flags.then(|| recorder(job, file, &parts, MAX_WINDOWS));
            (file, Followed { pages: Pages::new(parts, recorder), window: None })
        };
        let files = (0..job.files.len()).map(follow).collect();
        let counter = is_of_flags.then(|| Counter::new(job, sight));
        Explainer { counter, ..Explainer::following(job, files) }
    }

    /// The same of a job with tables for its course alone: it follows those files of which most is
    /// read. A run before it tells how many pages are read of each.
    pub fn of_course(job: &'a Job, pages_read: &[u64]) -> Self {
        let mut read: Vec<usize> = (0..job.files.len()).collect();
        let pages = |file: usize| pages_read.get(file).copied().unwrap_or(0);
        read.retain(|file| pages(*file) > 0);
        read.sort_by_key(|file| std::cmp::Reverse(pages(*file)));
        let shown = read.len().min(MOST_FILES);
        let follow = |&file: &usize| {
            let parts = Parts::reached(job, file);
            let recorder = recorder(job, file, &parts, MAX_WINDOWS / shown.max(1));
            (file, Followed { pages: Pages::new(parts, Some(recorder)), window: None })
        };
        let files = read[..shown].iter().map(follow).collect();
        let others = (read.len() - shown) as u64;
        let waits = Some(Waits::new(job));
        Explainer { others, waits, ..Explainer::following(job, files) }
    }

    fn following(job: &'a Job, files: BTreeMap<usize, Followed>) -> Self {
        let accesses = job.steps().map(ProgramStep::accesses).fold(0, u64::saturating_add);
        Explainer {
            job,
            accesses,
            files,
            others: 0,
            file: 0,
            number: 0,
            done: 0,
            at_hand: None,
            interval_end: first_access(1, accesses, accesses.clamp(1, INTERVALS)),
            interval: 0,
            counter: None,
            opens: OpenCounters::new(accesses),
            waits: None,
            by_mapping: vec![PerOrigin::default(); job.mappings.len()],
            by_open: vec![PerOrigin::default(); job.opens.len()],
            steps: if is_of_one_thread(job) { steps(job) } else { Vec::new() },
        }
    }

    /// The explanation, once the log has ended.
    pub fn finish(mut self) -> Explanation {
        self.end_access();
        let knows_accesses = is_of_one_thread(self.job);
        for followed in self.files.values_mut() {
            followed.pages.recorder.iter_mut().for_each(Recorder::end);
            followed.pages.settle_rest();
        }
        let history = self.courses();
        let (mut amounts, mut brought) = (PerOrigin::default(), PerOrigin::default());
        let (mut evicted, mut absent_accesses) = (0, 0);
        let mut of_files = Vec::new();
        for Followed { pages, .. } in self.files.values() {
            let own = if knows_accesses { pages.amounts } else { brought_alone(&pages.brought) };
            amounts.add(&own, Amount::add);
            brought.add(&pages.brought, Brought::add);
            evicted += pages.evicted;
            absent_accesses += pages.absent_touches;
            of_files.push(own);
        }
        let mapped = self.counter.is_some().then(|| Parts::of(self.job));
        let map = self.files.get(&0).zip(mapped);
        Explanation {
            amounts,
            brought,
            files: of_files,
            knows_accesses,
            evicted,
            absent_accesses,
            map: map.map(|(of, mapped)| Map::new(&of.pages, &mapped, MAP_CELLS)),
            misses: self.counter.map(Counter::finish),
            mappings: self.by_mapping,
            opens: self.by_open,
            history,
        }
    }

    /// The course of the run, of which every page is settled.
    fn courses(&mut self) -> Option<Courses> {
        let page_bytes = self.job.page_size();
        let is_of_flags = self.job.of_flags.is_some();
        let mut files: Vec<FileHistory> = Vec::new();
        for (&file, followed) in &mut self.files {
            let Some(recorder) = followed.pages.recorder.take() else { continue };
            let bounds = followed.pages.mapped.bounds();
            let history = recorder.finish(page_bytes, bounds);
            if is_of_flags {
                return Some(Courses::OneFile(Box::new(history)));
            }
            let counter = self.opens.of_file(self.job, file);
            let history = History {
                causes: Some(CausePages::all(&followed.pages.amounts, page_bytes)),
                mmap_miss: counter.map(|(_, course)| course.points().collect()),
                ..history
            };
            let counter_of = counter.map(|(open, _)| self.job.opens[open].name.clone());
            files.push(FileHistory {
                name: self.job.files[file].name.clone(),
                counter_of,
                history,
            });
        }
        let waits = self.waits.take()?;
        files.sort_by_key(|file| std::cmp::Reverse(file.history.read.iter().sum::<u64>()));
        let (accesses, other_files) = (self.accesses, self.others);
        let (threads, waits) = waits.finish(self.job);
        Some(Courses::Files(Box::new(ProgramHistory {
            accesses,
            files,
            other_files,
            waits,
            threads,
        })))
    }

    /// All pages of the access at hand up to this one are accessed.
    fn access_up_to(&mut self, index: PageIndex) {
        let file = self.file;
        let Some(at) = self.at_hand.as_mut().filter(|at| at.file == file && index < at.end) else {
            return;
        };
        let next = at.next.max(index);
        let from = mem::replace(&mut at.next, next);
        if let Some(followed) = self.files.get_mut(&file) {
            (from.0..index.0).for_each(|index| followed.pages.touch(PageIndex(index)));
        }
    }

    /// The access at hand is done: all that it decided is known.
    fn end_access(&mut self) {
        let Some(AtHand { file, next, end, .. }) = self.at_hand.take() else { return };
        if let Some(followed) = self.files.get_mut(&file) {
            (next.0..end.0).for_each(|index| followed.pages.touch(PageIndex(index)));
        }
        self.pass(self.number + 1);
    }

    /// So many accesses are done.
    fn pass(&mut self, done: u64) {
        self.done = done;
        if done >= self.interval_end {
            for followed in self.files.values_mut() {
                followed.pages.recorder.iter_mut().for_each(|recorder| recorder.accessed(done));
            }
            let intervals = self.accesses.clamp(1, INTERVALS);
            self.interval = interval_of(done, self.accesses, intervals);
            let has_next = self.interval + 1 < intervals || self.counter.is_some();
            self.interval_end = if has_next {
                first_access(self.interval + 1, self.accesses, intervals)
            } else {
                // Phases that are done again make more accesses than are known before.
                u64::MAX
            };
        }
    }

    /// What the access at hand brings in is counted here too.
    fn at_hand_by(&mut self) -> Option<&mut PerOrigin<Brought>> {
        match self.at_hand?.through? {
            Through::Mapping(mapping) => self.by_mapping.get_mut(mapping),
            Through::Open(open) => self.by_open.get_mut(open),
        }
    }

    /// A window was asked for, or a page is read alone.
    fn call(&mut self, window: Option<LastWindow>, by: Origin, start: PageIndex, size: PageCount) {
        if let Some(through) = self.at_hand_by() {
            through.get_mut(by).calls += 1;
        }
        let access = if self.counter.is_some() { self.done } else { self.number };
        let Some(followed) = self.files.get_mut(&self.file) else { return };
        followed.window = window;
        followed.pages.brought.get_mut(by).calls += 1;
        if let Some(recorder) = &mut followed.pages.recorder {
            recorder.call(by, start, size.0, access);
        }
    }

    /// Folios of `folio_pages` pages were added.
    fn add(&mut self, start: PageIndex, end: PageIndex, folio_pages: u64) {
        let Some(followed) = self.files.get_mut(&self.file) else { return };
        let read_ahead = self.job.machine.read_ahead;
        let parts = origins(followed.window, (start, end), folio_pages, read_ahead);
        for (start, end, origin) in parts {
            followed.pages.add(start, end, origin);
        }
        if let Some(through) = self.at_hand_by() {
            for (start, end, origin) in parts {
                through.get_mut(origin).pages += (end - start).0;
            }
        }
    }

    /// The counter of misses shows in a job with several.
    fn count(&mut self, value: impl FnOnce(u16) -> u16) {
        if self.waits.is_some() && self.files.contains_key(&self.file) {
            self.opens.count(self.done, value);
        }
    }

    fn apply(&mut self, decision: Decision) {
        match decision {
            Decision::Readahead { cause, index, start, size, mmap_miss, .. } => {
                let is_advised = matches!(cause, Cause::WillNeed | Cause::Governor);
                if is_advised {
                    // Advice is no access.
                    self.end_access();
                } else {
                    self.count(|_| mmap_miss);
                }
                let window = LastWindow { cause, index, start, end: start + size };
                self.call(Some(window), Origin::of(cause), start, size);
            }
            Decision::NoReadahead { index, mmap_miss } => {
                self.count(|_| mmap_miss);
                self.call(None, Origin::Single, index, PageCount(1));
            }
            Decision::Entered { found: Found { mmap_miss, .. }, .. } => {
                self.count(|_| mmap_miss);
            }
            Decision::Lookup { mmap_miss, .. } => self.count(|_| mmap_miss),
            Decision::MapPages { credit, .. } if credit > 0 => {
                self.count(|value| value.saturating_sub(credit.min(u16::MAX.into()) as u16));
            }
            Decision::Added { start, order, folios, .. } => {
                self.add(start, start + PageCount(folios << order.0), order.pages());
            }
            // Advice has faults of its own.
            Decision::Served { index, .. }
                if self.at_hand.is_some_and(|at| at.first <= index && index < at.end) =>
            {
                self.end_access();
            }
            other => {
                if let Some(followed) = self.files.get_mut(&self.file) {
                    followed.apply(other);
                }
            }
        }
    }
}

impl Log for Explainer<'_> {
    fn record(&mut self, decision: Decision) {
        if let Decision::File { file } = decision {
            self.file = file.number();
            return;
        }
        if let Decision::Readahead { index, .. }
        | Decision::NoReadahead { index, .. }
        | Decision::Entered { found: Found { index, .. }, .. } = decision
        {
            self.access_up_to(index);
        }
        let done = self.done;
        self.counter.iter_mut().for_each(|counter| counter.decision(&decision, done));
        self.apply(decision);
    }

    fn access(&mut self, number: u64) {
        // The one at hand goes on.
        if number == self.number {
            return;
        }
        self.end_access();
        self.number = number;
        self.pass(number);
        if let Some(waits) = &mut self.waits {
            waits.interval = self.interval;
        }
    }

    fn through(&mut self, open: u32) {
        self.opens.open = open;
    }

    fn accessed(&mut self, start: PageIndex, pages: PageCount) {
        let (file, end) = (self.file, start + pages);
        if is_of_one_thread(self.job) {
            self.end_access();
            let at = self.steps.partition_point(|(end, _)| *end <= self.number);
            let through = self.steps.get(at).and_then(|(_, through)| *through);
            self.at_hand = Some(AtHand { file, next: start, first: start, end, through });
        } else if let Some(followed) = self.files.get_mut(&file) {
            (start.0..end.0).for_each(|index| followed.pages.want(PageIndex(index)));
        }
    }

    fn waited(&mut self, task: usize, wait: Wait, ns: u64) {
        let by = match wait {
            Wait::Page(file, index) => self.files.get(&file.number()).map(|of| of.pages.by(index)),
            _ => None,
        };
        self.waits.iter_mut().for_each(|waits| waits.add(task, wait, by, ns));
    }
}

/// In which order several threads make their accesses no log says.
fn is_of_one_thread(job: &Job) -> bool {
    job.threads.len() == 1
}

/// By what brought them in, all pages.
fn brought_alone(brought: &PerOrigin<Brought>) -> PerOrigin<Amount> {
    let mut amounts = PerOrigin::default();
    for (origin, brought) in brought.iter() {
        *amounts.get_mut(origin) = Amount { pages: brought.pages, again: 0 };
    }
    amounts
}
