//! Where the bytes of a job came from, and why readahead stopped or did not.
//!
//! An [`Explainer`] reads a decision log as it comes, next to the accesses of the job, which no
//! log shows as long as their pages are mapped.
//!
//! Each page that enters the cache is counted once, under the first of these that holds:
//!
//! 1. it was accessed while it was in, and also when it was in before: *refetched after eviction*;
//! 2. it was accessed while it was in: *used*;
//! 3. it lies outside the mapping: *beyond the mapping*, or *between the segments* of an ELF file;
//! 4. it came only because folios are larger than the page asked for: *large-folio rounding*;
//! 5. otherwise by what brought it in: read-around, async readahead, on-demand readahead, advice
//!    (WILLNEED) of the program or of a governor, executable or huge-page readahead, or a single
//!    page that left before it was accessed.
//!
//! So the sums add up to the bytes read, *used* is what no readahead could have saved, and
//! *refetched* what more memory would have. Rounding means: of a HUGEPAGE window the rest of the
//! folio that holds the page accessed; of an executable window what its alignment adds to the
//! readahead size from that page on. Every other window has the same pages whatever the folios.

mod answer;
mod canvas;
mod counter;
mod history;
mod map;
mod origin;
mod pages;
mod parts;
mod program;
mod program_history;
mod program_tables;
pub(crate) mod remedies;
mod svg;
mod tables;
mod touches;
mod window;

use filemap_core::decision::{Cause, Decision, Found, Log};
use filemap_core::fault::lock;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::Job;

pub use counter::{COURSE_POINTS, Course, Moves, Point, Sight};
pub(crate) use history::first_access;
pub use history::{CausePages, Grid, History, INTERVALS, MAX_WINDOWS, ROWS, Window};
pub use map::{Cell, Map};
pub use origin::{Amount, Brought, Origin, PerOrigin};
pub use program::{ProgramExplainer, ProgramExplanation};
pub use program_history::{FileHistory, ProgramHistory, ProgramRecorder, ThreadWaits, WaitHistory};
pub(crate) use program_tables::Json as ProgramJson;
pub use program_tables::of_program;
pub use remedies::{Remedies, Trial};
pub use svg::svg;
pub(crate) use tables::Json;
pub use tables::report;

use counter::Counter;
use history::Recorder;
use pages::Pages;
use parts::Parts;
use touches::Touches;
use window::{LastWindow, origins};

/// Pages of the largest folio that may reach over the end of a mapping.
const LARGEST_FOLIO_PAGES: u64 = 512;

/// Cells of the map of an [`Explanation`].
const MAP_CELLS: u64 = 512;

/// What a decision log says of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// How much of the counter the log shows.
    pub sight: Sight,
    /// Pages that entered the cache, by origin; a page counts each time.
    pub amounts: PerOrigin<Amount>,
    /// The same pages by what brought them in.
    pub brought: PerOrigin<Brought>,
    /// Pages that left the cache, as far as the log shows it.
    pub evicted: u64,
    /// Accesses to pages that the log does not show to be in: 0 for a complete log.
    pub absent_accesses: u64,
    /// The counter's last value, by the log.
    pub mmap_miss: u16,
    /// The counter's highest value, by the log.
    pub mmap_miss_max: u16,
    /// What moved it.
    pub moves: Moves,
    /// Accesses done when it first rose above the threshold, and what had moved it by then.
    pub first_above: Option<(u64, Moves)>,
    /// How often it rose above the threshold.
    pub rises: u64,
    /// Its course.
    pub course: Course,
    /// Misses that read a single page because readahead is off for them.
    pub misses_off: u64,
    /// Which pages came in, were accessed, and left.
    pub map: Map,
    /// When they came in, and which of them were used.
    pub history: History,
}

impl Explanation {
    /// Pages that entered the cache.
    pub fn pages_read(&self) -> u64 {
        self.amounts.iter().map(|(_, amount)| amount.pages).sum()
    }

    /// The history of the run, with what else the record of an explanation says.
    pub fn whole_history(&self) -> History {
        let causes = self.amounts.iter().map(|(origin, amount)| CausePages {
            cause: origin.key().to_string(),
            pages: amount.pages,
            again: amount.again,
        });
        History {
            causes: Some(causes.collect()),
            mmap_miss: (self.sight != Sight::Nothing).then(|| self.course.points().collect()),
            ..self.history.clone()
        }
    }
}

/// Reads the decision log of a job; [`Explainer::finish`] has the explanation.
pub struct Explainer<'a> {
    job: &'a Job,
    touches: Touches<'a>,
    pages: Pages,
    counter: Counter,
    /// The decisions of the fault at hand: which page it is for shows at its end.
    fault: Option<Vec<Decision>>,
    window: Option<LastWindow>,
    misses_off: u64,
}

impl<'a> Explainer<'a> {
    /// An explainer of a run of `job` that has not begun.
    pub fn new(job: &'a Job, sight: Sight) -> Self {
        let (from, to) = Parts::of(job).bounds();
        // Windows may reach over the ends of the mapping, by one window or a folio each.
        let slack = job.machine.read_ahead.0 * 2 + LARGEST_FOLIO_PAGES;
        let from = PageIndex(from.0.saturating_sub(slack));
        let to = PageIndex((to.0 + slack).min(job.file_pages(0).0).max(to.0));
        let accesses = job.accesses().map(|phase| phase.accesses).sum();
        Explainer {
            job,
            touches: Touches::new(job),
            pages: Pages::new(Parts::of(job), Some(Recorder::new(accesses, MAX_WINDOWS, from, to))),
            counter: Counter::new(job, sight),
            fault: None,
            window: None,
            misses_off: 0,
        }
    }

    /// The explanation, once the log has ended.
    pub fn finish(mut self) -> Explanation {
        // A log that was cut off inside a fault still says what came in.
        for decision in self.fault.take().unwrap_or_default() {
            self.apply(&decision);
        }
        self.touches.make_all(&mut self.pages);
        self.pages.recorder.iter_mut().for_each(Recorder::end);
        self.pages.settle_rest();
        let Explainer { mut pages, counter, .. } = self;
        let recorder = pages.recorder.take().expect("it is there from the beginning");
        let bounds = Parts::of(self.job).bounds();
        Explanation {
            history: recorder.finish(self.job.page_size(), bounds),
            map: Map::new(&pages, &Parts::of(self.job), MAP_CELLS),
            sight: counter.sight(),
            amounts: pages.amounts,
            brought: pages.brought,
            evicted: pages.evicted,
            absent_accesses: pages.absent_touches,
            mmap_miss: counter.value(),
            mmap_miss_max: counter.highest,
            moves: counter.moves,
            first_above: counter.first_above.map(|done| (done, counter.moves_before)),
            rises: counter.rises,
            course: counter.course,
            misses_off: self.misses_off,
        }
    }

    fn end_fault(&mut self, index: PageIndex) {
        self.touches.up_to_fault(index, &mut self.pages);
        for decision in self.fault.take().unwrap_or_default() {
            self.apply(&decision);
        }
        self.touches.make_next(&mut self.pages);
    }

    fn apply(&mut self, decision: &Decision) {
        let misses = self.counter.moves.misses;
        self.counter.decision(decision, self.touches.done);
        let counted = self.counter.moves.misses > misses;
        match *decision {
            Decision::Readahead { cause, index, start, size, .. } => {
                self.window = Some(LastWindow { cause, index, start, end: start + size });
                self.call(Origin::of(cause), start, size);
            }
            Decision::BasePages { start, size, .. } => {
                if let Some(window) = &mut self.window {
                    window.reach(start, size);
                    self.pages.recorder.iter_mut().for_each(|of| of.reach(start, start + size));
                }
            }
            Decision::NoReadahead { index, .. } => {
                self.window = None;
                self.misses_off += u64::from(!counted);
                self.call(Origin::Single, index, PageCount(1));
            }
            Decision::Added { start, order, folios, .. } => {
                self.add(start, start + PageCount(folios << order.0), order.pages());
            }
            Decision::Copied { index } => self.pages.copy(index),
            Decision::Evicted { start, pages } => self.pages.evict(start, start + pages),
            _ => {}
        }
    }

    fn call(&mut self, by: Origin, start: PageIndex, size: PageCount) {
        self.pages.brought.get_mut(by).calls += 1;
        if let Some(recorder) = &mut self.pages.recorder {
            recorder.call(by, start, size.0, self.touches.done);
        }
    }

    /// Folios of `folio_pages` pages were added.
    fn add(&mut self, start: PageIndex, end: PageIndex, folio_pages: u64) {
        let read_ahead = self.job.machine.read_ahead;
        for (start, end, origin) in origins(self.window, (start, end), folio_pages, read_ahead) {
            self.pages.add(start, end, origin);
        }
    }
}

impl Log for Explainer<'_> {
    fn record(&mut self, decision: Decision) {
        match (&mut self.fault, decision) {
            (None, Decision::Locked(lock)) if lock == lock::of_access(&self.job.rules) => {
                self.fault = Some(vec![decision]);
            }
            (Some(fault), Decision::Served { index, .. }) => {
                fault.push(decision);
                self.end_fault(index);
            }
            (Some(fault), _) => fault.push(decision),
            (None, Decision::Entered { found: Found { index, req, .. }, .. }) => {
                self.touches.up_to_read(index, index + req, &mut self.pages);
                self.apply(&decision);
            }
            (None, Decision::NoReadahead { index, .. }) => {
                self.touches.up_to_block(index, &mut self.pages);
                self.apply(&decision);
            }
            // Where no tracepoint shows that readahead was entered, its window does.
            (
                None,
                Decision::Readahead { cause: Cause::ReadStream | Cause::AsyncRead, index, .. },
            ) if self.counter.sight() == Sight::Nothing => {
                self.touches.up_to_block(index, &mut self.pages);
                self.apply(&decision);
            }
            (None, _) => self.apply(&decision),
        }
    }
}
