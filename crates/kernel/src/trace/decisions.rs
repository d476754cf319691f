//! Converts trace events to decisions of the model.

use std::mem;

use filemap_core::decision::{Cause, Decision, ReadaheadSnapshot};
use filemap_core::fault::lock;
use filemap_core::rules::Rules;
use filemap_core::units::{FileId, Order, PageCount, PageIndex};
use filemap_job::ShownKinds;
use filemap_job::program::NamedMapping;

use super::event::{TraceEvent, Tracepoint};
use crate::page_size;
use crate::probe::ProbeProcess;

/// The traced thread, and the state that its decisions depend on.
#[derive(Clone, Copy)]
pub(super) struct TracedThread<'a> {
    /// The thread.
    pub(super) pid: u32,
    /// What it maps.
    pub(super) process: &'a ProbeProcess,
    /// Address of each mapping.
    pub(super) addresses: &'a [u64],
    /// The kernel's rules.
    pub(super) rules: &'a Rules,
    /// Order of a folio that one PMD entry maps.
    pub(super) pmd_order: Order,
    /// What the kernel shows.
    pub(super) shown: ShownKinds,
}

/// Decisions of the thread in `events`, and evictions by others.
pub(super) fn decisions(
    events: impl Iterator<Item = TraceEvent>,
    child: &TracedThread,
) -> Vec<Decision> {
    let area = child.process.mappings.first();
    let mut reader = DecisionReader {
        child,
        area,
        executable: area.is_some_and(|area| area.mapping.exec),
        fault: None,
        looked_up: None,
        found: None,
        runs: Vec::new(),
        file: 0,
        out: Vec::new(),
    };
    for event in events {
        if event.pid == child.pid || matches!(event.tracepoint, Tracepoint::Removed { .. }) {
            reader.event(&event);
        }
    }
    reader.end_runs(None);
    reader.end_fault();
    reader.out
}

struct DecisionReader<'a> {
    child: &'a TracedThread<'a>,
    /// The mapping of the last fault; before the first, the first mapping.
    area: Option<&'a NamedMapping>,
    /// Whether the last fault was on executable pages.
    executable: bool,
    /// File and page of the current fault.
    fault: Option<(usize, PageIndex)>,
    /// The last lookup, while it is not known to have missed.
    looked_up: Option<LookedUp>,
    /// The last readahead entry, and its cause.
    found: Option<(ReadaheadSnapshot, Cause)>,
    /// Folios added since the last known cause, on a kernel that traces no readahead.
    runs: Vec<FolioRun>,
    /// The file of the last decision.
    file: usize,
    out: Vec<Decision>,
}

/// A lookup in the log.
struct LookedUp {
    file: usize,
    index: PageIndex,
    /// Index in the log.
    at: usize,
}

impl<'a> DecisionReader<'a> {
    fn event(&mut self, event: &TraceEvent) {
        let file = event.file;
        match event.tracepoint {
            Tracepoint::Added { .. } | Tracepoint::Removed { .. } => {}
            Tracepoint::Read { from, last } => self.end_runs(Some((file, from, last))),
            _ => self.end_runs(None),
        }
        match event.tracepoint {
            Tracepoint::UserFault { address } => self.begin_fault(address),
            Tracepoint::Read { .. } => self.end_fault(),
            Tracepoint::Fault { index } => {
                self.found = None;
                let lookup = Decision::Lookup { index, hit: true, tried: false, mmap_miss: 0 };
                self.push(file, lookup);
                self.looked_up = Some(LookedUp { file, index, at: self.out.len() - 1 });
            }
            Tracepoint::MapPages { from, last } => {
                self.push(file, Decision::MapPages { from, last, mapped: PageCount(0), credit: 0 });
            }
            Tracepoint::SyncReadahead(found) => {
                let cause = self.fault_or_read(Cause::SequentialFault, Cause::ReadStream);
                self.entered(file, found, cause);
            }
            Tracepoint::AsyncReadahead(found) => {
                let cause = self.fault_or_read(Cause::AsyncFault, Cause::AsyncRead);
                self.entered(file, found, cause);
            }
            Tracepoint::Window { start, order, size, async_size, .. } => {
                let (cause, index) = self.cause(order, start);
                self.add_window(file, (cause, index), order, (start, size, async_size));
            }
            Tracepoint::BasePages { start, size, async_size } => {
                // A single read has no window before its base pages.
                if let Some((ReadaheadSnapshot { index, .. }, _)) = self.found.take() {
                    let cause = self.fault_or_read(Cause::SequentialSingle, Cause::ReadSingle);
                    let window = (start, size, async_size);
                    self.add_window(file, (cause, index), Order(0), window);
                }
                self.push(file, Decision::BasePages { start, size, async_size });
            }
            Tracepoint::Added { start, order } if !self.child.shown.has_readahead() => {
                self.add_to_run(file, start, order);
                self.push(file, Decision::Added { start, order, folios: 1, marked: None });
            }
            Tracepoint::Added { start, order } => {
                let known = self.looked_up.as_ref().map(|known| (known.file, known.index));
                if known == Some((file, start)) {
                    self.missed();
                    self.push(file, Decision::NoReadahead { index: start, mmap_miss: 0 });
                }
                self.push(file, Decision::Added { start, order, folios: 1, marked: None });
            }
            Tracepoint::Removed { start, order } => {
                let pages = PageCount(order.pages());
                self.push(file, Decision::Evicted { start, pages });
            }
        }
    }

    /// Appends a decision about a file.
    fn push(&mut self, file: usize, decision: Decision) {
        if self.file != file {
            self.file = file;
            self.out.push(Decision::File { file: FileId::new(file as u32) });
        }
        self.out.push(decision);
    }

    /// Begins a fault on `address`, if it is in a mapping.
    fn begin_fault(&mut self, address: u64) {
        let TracedThread { process, addresses, .. } = *self.child;
        let shown = process.mappings.iter().zip(addresses).find_map(|(area, start)| {
            let page = PageIndex(address.checked_sub(*start)? / page_size());
            Some((area, page, area.file_page(page)?))
        });
        let Some((area, page, index)) = shown else { return };
        self.end_fault();
        let file = process.opens[area.open];
        (self.area, self.executable) = (Some(area), area.is_executable(page));
        self.fault = Some((file, index));
        self.push(file, Decision::Locked { lock: lock::access_lock(self.child.rules) });
    }

    /// `of_fault` during a fault, else `of_read`.
    fn fault_or_read(&self, of_fault: Cause, of_read: Cause) -> Cause {
        if self.fault.is_some() { of_fault } else { of_read }
    }

    fn entered(&mut self, file: usize, found: ReadaheadSnapshot, cause: Cause) {
        self.found = Some((found, cause));
        self.push(file, Decision::Entered { cause, found });
    }

    /// The cause of a window, and the page whose access requested it.
    fn cause(&mut self, order: Order, start: PageIndex) -> (Cause, PageIndex) {
        if let Some((found, cause)) = self.found.take() {
            return (cause, found.index);
        }
        (self.cause_of_miss(order), self.fault.map_or(start, |(_, index)| index))
    }

    /// The cause of a window of this order for a fault that missed, unless a stream requested it.
    fn cause_of_miss(&self, order: Order) -> Cause {
        let huge = self.area.is_some_and(|area| area.mapping.advice.is_huge());
        if huge && order == self.child.pmd_order {
            Cause::HugePage
        } else if self.executable && self.child.rules.executable_readahead {
            Cause::Executable
        } else {
            Cause::ReadAround
        }
    }

    /// Handles an added folio without a traced window: consecutive folios are one window.
    fn add_to_run(&mut self, file: usize, start: PageIndex, order: Order) {
        let pages = PageCount(order.pages());
        if let Some(run) = self.runs.last_mut().filter(|run| run.is_continued_by(file, start)) {
            run.pages += pages;
            return;
        }
        // Its cause is known only afterwards.
        let window = Decision::Readahead {
            cause: Cause::ReadAround,
            index: start,
            order,
            start,
            size: pages,
            async_size: PageCount(0),
            mmap_miss: 0,
        };
        self.push(file, window);
        let at = self.out.len() - 1;
        self.runs.push(FolioRun { file, at, start, order, pages });
    }

    /// Completes the current windows, and attributes them to this `read` or to the current fault.
    fn end_runs(&mut self, read: Option<(usize, PageIndex, PageIndex)>) {
        for run in mem::take(&mut self.runs) {
            let fault = self.fault.filter(|(file, _)| *file == run.file);
            let decision = match (read, fault) {
                (Some((file, from, last)), _) if file == run.file => {
                    let is_miss = run.holds_any(from, last);
                    let cause = if is_miss { Cause::ReadStream } else { Cause::AsyncRead };
                    run.window(cause, from)
                }
                (_, Some((_, index))) if run.holds_any(index, index) => {
                    self.missed();
                    match self.area.is_some_and(|area| area.mapping.advice.is_sequential()) {
                        _ if run.pages == PageCount(1) => {
                            Decision::NoReadahead { index, mmap_miss: 0 }
                        }
                        true => run.window(Cause::SequentialFault, index),
                        false => run.window(self.cause_of_miss(run.order), index),
                    }
                }
                (_, Some((_, index))) => run.window(Cause::AsyncFault, index),
                (_, None) => run.window(Cause::ReadStream, run.start),
            };
            self.out[run.at] = decision;
        }
    }

    /// Appends a requested window.
    fn add_window(
        &mut self,
        file: usize,
        (cause, index): (Cause, PageIndex),
        order: Order,
        (start, size, async_size): (PageIndex, PageCount, PageCount),
    ) {
        if !cause.is_async() {
            self.missed();
        }
        self.looked_up = None;
        let mmap_miss = 0;
        let window =
            Decision::Readahead { cause, index, order, start, size, async_size, mmap_miss };
        self.push(file, window);
    }

    /// Records that the current lookup missed.
    fn missed(&mut self) {
        if let Some(LookedUp { at, .. }) = self.looked_up.take()
            && let Decision::Lookup { hit, .. } = &mut self.out[at]
        {
            *hit = false;
        }
    }

    fn end_fault(&mut self) {
        (self.looked_up, self.found) = (None, None);
        if let Some((file, index)) = mem::take(&mut self.fault) {
            self.push(file, Decision::Served { index, major: false, tries: 1 });
        }
    }
}

/// Folios added one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct FolioRun {
    /// The file.
    pub(super) file: usize,
    /// Index in the log of the decision that requested them.
    pub(super) at: usize,
    /// The first page.
    pub(super) start: PageIndex,
    /// Order of the first folio.
    pub(super) order: Order,
    /// Pages so far.
    pub(super) pages: PageCount,
}

impl FolioRun {
    /// Whether a folio of `file` at `start` continues the run.
    pub(super) fn is_continued_by(&self, file: usize, start: PageIndex) -> bool {
        self.file == file && self.start + self.pages == start
    }

    /// Whether it contains any of the pages `from` to `last`.
    pub(super) fn holds_any(&self, from: PageIndex, last: PageIndex) -> bool {
        from < self.start + self.pages && self.start <= last
    }

    /// The run as a window requested by an access to page `index`. Its mark is unknown.
    pub(super) fn window(&self, cause: Cause, index: PageIndex) -> Decision {
        let FolioRun { start, order, pages: size, .. } = *self;
        let async_size = PageCount(0);
        Decision::Readahead { cause, index, order, start, size, async_size, mmap_miss: 0 }
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::decision::Log;
    use filemap_job::{Job, JobFlags, ShownLog};

    use super::*;
    use crate::engine::process;

    const ADDRESS: u64 = 0x7f00_0000_0000;

    fn causes(advice: &str, seen: &[Tracepoint]) -> Vec<Cause> {
        causes_in(JobFlags { advice: Some(advice.to_string()), ..JobFlags::default() }, seen)
    }

    fn causes_in(spec: JobFlags, seen: &[Tracepoint]) -> Vec<Cause> {
        let spec = JobFlags {
            workload: Some("random".to_string()),
            file_size: Some("16m".parse().expect("a size")),
            ..spec
        };
        let job = spec.validate(None).expect("a job");
        let decisions = read(&job, seen);
        let cause = |decision: &Decision| match decision {
            Decision::Readahead { cause, .. } => Some(*cause),
            _ => None,
        };
        decisions.iter().filter_map(cause).collect()
    }

    fn read(job: &Job, events: &[Tracepoint]) -> Vec<Decision> {
        read_seeing(job, events, ShownKinds::ALL)
    }

    fn read_seeing(job: &Job, shown: &[Tracepoint], seen: ShownKinds) -> Vec<Decision> {
        let process = process(job, &["file".into()]).expect("a process");
        let event = |shown: &Tracepoint| TraceEvent {
            at_ns: 0,
            cpu: 0,
            pid: 7,
            file: 0,
            tracepoint: *shown,
        };
        let events: Vec<TraceEvent> = shown.iter().map(event).collect();
        let (rules, pmd_order) = (&job.rules, job.machine.arch.pmd_order());
        let addresses = &[ADDRESS];
        let child =
            TracedThread { pid: 7, process: &process, addresses, rules, pmd_order, shown: seen };
        decisions(events.into_iter(), &child)
    }

    fn fault(page: u64) -> [Tracepoint; 2] {
        let address = ADDRESS + page * page_size() + 5;
        [Tracepoint::UserFault { address }, Tracepoint::Fault { index: PageIndex(page) }]
    }

    fn window(order: u8) -> Tracepoint {
        let (start, size, async_size) = (PageIndex(0), PageCount(512), PageCount(0));
        Tracepoint::Window { start, order: Order(order), size, async_size, ra_pages: size }
    }

    #[test]
    fn infers_cause_of_window() {
        let found = ReadaheadSnapshot::default();
        let with = |seen: &[Tracepoint]| [&fault(0), seen].concat();
        for (advice, seen, cause) in [
            ("normal", with(&[window(0)]), Cause::ReadAround),
            ("hugepage", with(&[window(9)]), Cause::HugePage),
            ("hugepage", with(&[window(0)]), Cause::ReadAround),
            (
                "sequential",
                with(&[Tracepoint::SyncReadahead(found), window(0)]),
                Cause::SequentialFault,
            ),
            ("normal", with(&[Tracepoint::AsyncReadahead(found), window(2)]), Cause::AsyncFault),
            ("normal", vec![Tracepoint::SyncReadahead(found), window(0)], Cause::ReadStream),
            ("normal", vec![Tracepoint::AsyncReadahead(found), window(0)], Cause::AsyncRead),
        ] {
            assert_eq!(causes(advice, &seen), [cause], "{advice} {seen:?}");
        }
    }

    #[test]
    fn alternate_pieces_are_executable() {
        let pieces = |prot: &str| JobFlags {
            split: Some(4),
            split_prot: Some(prot.to_string()),
            ..JobFlags::default()
        };
        let windows = |page| [&fault(page)[..], &[window(0)]].concat();
        assert_eq!(causes_in(pieces("exec"), &windows(3)), [Cause::ReadAround]);
        assert_eq!(causes_in(pieces("exec"), &windows(4)), [Cause::Executable]);
        assert_eq!(causes_in(pieces("write"), &windows(4)), [Cause::ReadAround]);
    }

    /// A window shows its order, a single read only its base pages, and each lookup its outcome.
    #[test]
    fn shows_readahead_like_the_model() {
        let job = JobFlags { workload: Some("random".to_string()), ..JobFlags::default() };
        let job = JobFlags { file_size: Some("16m".parse().expect("a size")), ..job };
        let job = job.validate(None).expect("a job");
        let (start, size, async_size) = (PageIndex(0), PageCount(1), PageCount(0));
        let base = Tracepoint::BasePages { start, size, async_size };
        let sync = [Tracepoint::SyncReadahead(ReadaheadSnapshot::default()), base];
        let looked_up = Tracepoint::Fault { index: PageIndex(9) };
        let events = [&fault(9)[..], &[window(4), looked_up], &sync].concat();
        let decisions = read(&job, &events);
        let hits = decisions.iter().filter_map(|decision| match decision {
            Decision::Lookup { hit, .. } => Some(*hit),
            _ => None,
        });
        assert_eq!(hits.collect::<Vec<_>>(), [false, false]);
        let mut log = ShownLog::default();
        decisions.iter().for_each(|decision| log.record(*decision));
        let entered =
            Decision::Entered { cause: Cause::ReadStream, found: ReadaheadSnapshot::default() };
        let expected = [
            "access 9".to_string(),
            "fault 9".to_string(),
            format!("ra_order {start} order=4 size=512 async_size={async_size}"),
            "fault 9".to_string(),
            entered.to_string(),
            Decision::BasePages { start, size, async_size }.to_string(),
        ];
        let lines: Vec<String> = log.into_lines().iter().map(Decision::to_string).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn page_without_window_is_no_readahead() {
        let added = Tracepoint::Added { start: PageIndex(3), order: Order(0) };
        assert_eq!(causes("random", &[&fault(3)[..], &[added]].concat()), []);
        let foreign = Tracepoint::UserFault { address: 16 };
        assert_eq!(causes("random", &[foreign]), []);
    }
}
