//! Recovers the accesses of a single-threaded job from a log of tracepoints.

use std::collections::{BTreeSet, VecDeque};

use filemap_core::address::vma::{Advice, Vma};
use filemap_core::decision::{
    Cause, Decision, Lock, Log, MissChange, MissChangeCause, ReadaheadSnapshot,
};
use filemap_core::fault::lock;
use filemap_core::readahead::miss;
use filemap_core::units::{FileId, Order, PageCount, PageIndex, Vpn};
use filemap_job::Job;
use filemap_job::program::{Fadvise, Madvise, ProgramStep, Rounds};

use super::counter::CounterVisibility;
use super::explainer::{Explainer, Explanation};

/// Explains a log without access numbers. The log shows the accesses that fault or read; the job
/// tells which others lie between them. The log does not show either when `mmap_miss` is consulted;
/// that follows from the advice of the mapping.
pub struct TraceExplainer<'a> {
    job: &'a Job,
    explainer: Explainer<'a>,
    visibility: CounterVisibility,
    /// Upcoming events that were peeked at.
    ahead: VecDeque<JobEvent>,
    rest: Box<dyn Iterator<Item = JobEvent> + 'a>,
    /// The number of the next access, and whether it has begun.
    number: u64,
    has_begun: bool,
    /// The file that the log is about.
    file: usize,
    /// Current advice of each mapping.
    advice: Vec<Advice>,
    /// Private copies of pages, by mapping; accesses to them bypass the cache.
    copied: BTreeSet<(usize, PageIndex)>,
    /// Buffered entries of the current fault, whose page is known only once it is served.
    fault: Option<Vec<(usize, LogEntry)>>,
    first_lock: Lock,
}

/// A step of a job that a log shows, or that affects what it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct JobEvent {
    open: usize,
    mapping: Option<usize>,
    kind: JobEventKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobEventKind {
    /// A touch of page `page` of a mapping, which maps page `index` of the file.
    Touch { page: PageIndex, index: PageIndex },
    /// A read of pages from the first up to but excluding the second.
    Read(PageIndex, PageIndex),
    /// A read that bypasses the page cache.
    DirectRead,
    /// Advice to read pages from the first up to but excluding the second.
    WillNeed(PageIndex, PageIndex),
    /// The advice of a mapping from here on.
    Advise(Advice),
}

#[derive(Clone, Copy, Debug)]
enum LogEntry {
    Decision(Decision),
    MissChange(MissChange),
}

impl<'a> TraceExplainer<'a> {
    /// An explainer for a run of `job`, with `pages_read` as for `Explainer::new`.
    pub fn new(job: &'a Job, visibility: CounterVisibility, pages_read: &[u64]) -> Self {
        TraceExplainer {
            job,
            explainer: Explainer::new(job, visibility, pages_read),
            visibility,
            ahead: VecDeque::new(),
            rest: Box::new(events(job)),
            number: 0,
            has_begun: false,
            file: 0,
            advice: job.mappings.iter().map(|mapping| mapping.mapping.advice).collect(),
            copied: BTreeSet::new(),
            fault: None,
            first_lock: lock::access_lock(&job.rules),
        }
    }

    /// The explanation, once the log has ended.
    pub fn finish(mut self) -> Explanation {
        // Entries of an incomplete fault at the end of the log still count as reads.
        self.fault.take().into_iter().flatten().for_each(|(file, entry)| self.pass_on(file, entry));
        while self.next_event().is_some() {
            self.complete_next();
        }
        self.explainer.finish()
    }

    fn next_event(&mut self) -> Option<JobEvent> {
        if self.ahead.is_empty() {
            self.ahead.extend(self.rest.next());
        }
        self.ahead.front().copied()
    }

    /// Begins the next event.
    fn begin_next(&mut self) {
        let Some(event) = self.next_event().filter(|_| !self.has_begun) else { return };
        self.has_begun = true;
        if let JobEventKind::Advise(advice) = event.kind {
            event.mapping.into_iter().for_each(|mapping| self.advice[mapping] = advice);
            return;
        }
        if event.is_access() {
            self.explainer.access(self.number);
        }
        self.explainer.through(event.open as u32);
        self.explainer.mapping(event.mapping);
        self.set_file(self.job.opens[event.open].file);
        match event.kind {
            JobEventKind::Touch { index, .. } => {
                let is_copied = event.mapping.is_some_and(|m| self.copied.contains(&(m, index)));
                if !is_copied {
                    self.explainer.describe_access(index, PageCount(1));
                }
            }
            JobEventKind::Read(first, end) => self.explainer.describe_access(first, end - first),
            _ => {}
        }
    }

    /// Completes the next event.
    fn complete_next(&mut self) {
        self.begin_next();
        let event = self.ahead.pop_front();
        self.number += u64::from(event.is_some_and(|event| event.is_access()));
        self.has_begun = false;
    }

    /// Completes the events before the next one that `is_wanted`, and begins that one. Without such
    /// an event it changes nothing and returns false.
    fn advance_to(&mut self, is_wanted: impl Fn(&Job, &JobEvent) -> bool) -> bool {
        let mut at = 0;
        loop {
            if at == self.ahead.len() {
                let Some(event) = self.rest.next() else { return false };
                self.ahead.push_back(event);
            }
            if is_wanted(self.job, &self.ahead[at]) {
                break;
            }
            at += 1;
        }
        (0..at).for_each(|_| self.complete_next());
        self.begin_next();
        true
    }

    /// Begins the read of a block that contains page `index`, preferring a block that ends at
    /// `end`.
    fn advance_to_read(&mut self, index: PageIndex, end: Option<PageIndex>) {
        let file = self.file;
        let reads = |job: &Job, event: &JobEvent| {
            let JobEventKind::Read(first, last) = event.kind else { return false };
            job.opens[event.open].file == file
                && end.map_or(first <= index && index < last, |end| last == end)
        };
        // A fault of MADV_POPULATE_READ is not in the log and looks like a read.
        if self.job.steps().any(|step| matches!(step, ProgramStep::Read { .. })) {
            self.advance_to(reads);
        }
    }

    /// Ends the fault on page `index`. A page stays mapped until another fault evicts it, so this
    /// is the next access to the page.
    fn end_fault(&mut self, index: PageIndex, entries: Vec<(usize, LogEntry)>) {
        let file = self.file;
        let is_found = self.advance_to(|job, event| {
            let JobEventKind::Touch { index: touched, .. } = event.kind else { return false };
            touched == index && job.opens[event.open].file == file
        });
        entries.into_iter().for_each(|(file, entry)| self.pass_on(file, entry));
        if is_found {
            self.complete_next();
        }
    }

    fn set_file(&mut self, file: usize) {
        self.explainer.record(Decision::File { file: FileId::new(file as u32) });
    }

    fn pass_on(&mut self, file: usize, entry: LogEntry) {
        self.set_file(file);
        let decision = match entry {
            LogEntry::Decision(decision) => decision,
            LogEntry::MissChange(change) => return self.explainer.mmap_miss_changed(change),
        };
        if let Decision::Copied { index } = decision {
            let event = self.next_event();
            let mapping = event.and_then(|event| event.mapping);
            self.copied.extend(mapping.map(|mapping| (mapping, index)));
        }
        if self.visibility != CounterVisibility::Every
            && let Some(cause) = self.miss_change(&decision)
        {
            self.explainer.mmap_miss_changed(MissChange { cause, before: 0, after: 0 });
        }
        self.explainer.record(decision);
    }

    /// The change of `mmap_miss` that `decision` of a kernel implies.
    fn miss_change(&mut self, decision: &Decision) -> Option<MissChangeCause> {
        let rules = &self.job.rules;
        match *decision {
            Decision::MapPages { .. } => return Some(MissChangeCause::Around { hits: 0 }),
            Decision::Readahead { cause: Cause::ReadAround | Cause::Executable, .. } => {}
            Decision::Readahead { cause: Cause::HugePage, .. } if rules.huge_page_counts => {}
            Decision::NoReadahead { .. } => {}
            _ => return None,
        }
        let reads_window = matches!(decision, Decision::Readahead { .. });
        let JobEvent { mapping, kind, .. } = self.next_event()?;
        let JobEventKind::Touch { page, index } = kind else { return None };
        let (mapping, advice) = (&self.job.mappings[mapping?], self.advice[mapping?]);
        let executable = mapping.is_executable(page);
        let has_readahead = self.job.machine.read_ahead > PageCount(0);
        let is_on = has_readahead
            && (!advice.is_random() || (executable && rules.executable_readahead))
            || advice.is_huge() && rules.huge_page_counts;
        let pages = PageCount(1);
        let vma = Vma { start: Vpn(page.0), pgoff: index, pages, advice, executable };
        (is_on && miss::counts_misses(&vma, rules))
            .then_some(MissChangeCause::Miss { reads_window })
    }

    /// Attributes base pages outside of any window, and without an access, to advice.
    fn record_will_need(&mut self, start: PageIndex, size: PageCount) {
        let file = self.file;
        if self.explainer.is_in_window(file, start) {
            return;
        }
        let is_advised = |job: &Job, event: &JobEvent| {
            let JobEventKind::WillNeed(first, end) = event.kind else { return false };
            job.opens[event.open].file == file && first <= start && start < end
        };
        let gives_advice = self.job.steps().any(|step| will_need(self.job, step).is_some());
        if gives_advice && self.advance_to(is_advised) {
            let decision = Decision::Readahead {
                cause: Cause::WillNeed,
                index: start,
                order: Order(0),
                start,
                size,
                async_size: PageCount(0),
                mmap_miss: 0,
            };
            self.pass_on(file, LogEntry::Decision(decision));
        }
    }
}

impl Log for TraceExplainer<'_> {
    fn record(&mut self, decision: Decision) {
        if let Decision::File { file } = decision {
            self.file = file.number();
            return;
        }
        let entry = LogEntry::Decision(decision);
        if let Some(fault) = &mut self.fault {
            fault.push((self.file, entry));
            if let Decision::Served { index, .. } = decision {
                let entries = self.fault.take().unwrap_or_default();
                self.end_fault(index, entries);
            }
            return;
        }
        match decision {
            Decision::Locked { lock } if lock == self.first_lock => {
                self.fault = Some(vec![(self.file, entry)]);
                return;
            }
            Decision::Entered { found: ReadaheadSnapshot { index, req, .. }, .. } => {
                self.advance_to_read(index, Some(index + req));
            }
            Decision::NoReadahead { index, .. } => self.advance_to_read(index, None),
            // Without a tracepoint for entering readahead, its window shows that.
            Decision::Readahead { cause: Cause::ReadStream | Cause::AsyncRead, index, .. }
                if self.visibility == CounterVisibility::Hidden =>
            {
                self.advance_to_read(index, None);
            }
            Decision::BasePages { start, size, .. }
                if self.visibility != CounterVisibility::Every =>
            {
                self.record_will_need(start, size);
            }
            _ => {}
        }
        self.pass_on(self.file, entry);
    }

    fn mmap_miss_changed(&mut self, change: MissChange) {
        let entry = LogEntry::MissChange(change);
        match &mut self.fault {
            Some(fault) => fault.push((self.file, entry)),
            None => self.pass_on(self.file, entry),
        }
    }
}

impl JobEvent {
    fn is_access(&self) -> bool {
        !matches!(self.kind, JobEventKind::WillNeed(..) | JobEventKind::Advise(_))
    }
}

/// The events of the first thread of `job`, in order.
fn events(job: &Job) -> impl Iterator<Item = JobEvent> + '_ {
    let thread = &job.threads[0];
    let rounds = match thread.rounds {
        Rounds::Times(times) => times,
        Rounds::For(_) => 1,
    };
    let mut advice: Vec<Advice> =
        job.mappings.iter().map(|mapping| mapping.mapping.advice).collect();
    let steps = (0..rounds).flat_map(|_| &thread.steps);
    steps.flat_map(move |step| step_events(job, step, &mut advice))
}

fn step_events<'a>(
    job: &'a Job,
    step: &'a ProgramStep,
    advice: &mut [Advice],
) -> Box<dyn Iterator<Item = JobEvent> + 'a> {
    let Some(open) = job.step_open(step) else { return Box::new(std::iter::empty()) };
    let mapping = step.touched_mapping();
    let event = move |kind: JobEventKind| JobEvent { open, mapping, kind };
    match step {
        ProgramStep::Touch { mapping, accesses, .. } => {
            let touched = &job.mappings[*mapping];
            let (from_beginning, in_file) = (touched.from_beginning(), touched.file_pages());
            Box::new(job.touches(*mapping, accesses).map(move |page| {
                event(JobEventKind::Touch { page: from_beginning(page), index: in_file(page) })
            }))
        }
        ProgramStep::Read { offset_bytes, len_bytes, accesses, .. } => {
            let (size, is_direct) = (job.page_size(), job.is_direct(step));
            Box::new(job.reads(*len_bytes, accesses).map(move |block| {
                let start = offset_bytes + block.offset_bytes;
                let end = (start + block.len_bytes).div_ceil(size);
                event(if is_direct {
                    JobEventKind::DirectRead
                } else {
                    JobEventKind::Read(PageIndex(start / size), PageIndex(end))
                })
            }))
        }
        ProgramStep::Madvise { mapping, advice: Madvise::Flag(flag), .. } => {
            advice[*mapping] = advice[*mapping].and(*flag);
            Box::new(std::iter::once(event(JobEventKind::Advise(advice[*mapping]))))
        }
        step => Box::new(will_need(job, step).into_iter().map(event)),
    }
}

/// The pages of the file that `step` advises to read, if it is WILLNEED advice.
fn will_need(job: &Job, step: &ProgramStep) -> Option<JobEventKind> {
    match step {
        ProgramStep::Madvise { mapping, advice: Madvise::WillNeed, first, pages } => {
            let in_file = job.mappings[*mapping].file_pages();
            let last = in_file((first.0 + pages.0).saturating_sub(1));
            Some(JobEventKind::WillNeed(in_file(first.0), last + PageCount(1)))
        }
        ProgramStep::Fadvise { open, advice: Fadvise::WillNeed, offset_bytes, len_bytes } => {
            let (size, file) = (job.page_size(), job.opens[*open].file);
            let end = len_bytes.map(|len| (offset_bytes + len).div_ceil(size));
            let end = end.unwrap_or(job.file_pages(file).0);
            Some(JobEventKind::WillNeed(PageIndex(offset_bytes / size), PageIndex(end)))
        }
        _ => None,
    }
}
