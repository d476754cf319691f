//! The accesses of a job of one file, as its log of tracepoints shows them.

use std::collections::BTreeSet;
use std::iter::Peekable;

use filemap_core::decision::{Cause, Decision, Found, Lock, Log};
use filemap_core::fault::lock;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::Job;
use filemap_job::program::ProgramStep;

use super::counter::Sight;
use super::explainer::Explainer;
use super::explanation::Explanation;

/// Reads a log that does not tell which access its decisions belong to. It shows those accesses
/// that fault or read; the others lie between.
pub struct Traced<'a> {
    explainer: Explainer<'a>,
    left: Peekable<Box<dyn Iterator<Item = Touch> + 'a>>,
    /// The number of the access at the front, and whether it has begun.
    number: u64,
    is_begun: bool,
    /// Pages that the program has copies of: accesses to them are not to the cache.
    copied: BTreeSet<PageIndex>,
    /// The decisions of the fault at hand: which page it is for shows at its end.
    fault: Option<Vec<Decision>>,
    first: Lock,
    sight: Sight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touch {
    Page(PageIndex),
    /// From the first page up to before the second.
    Read(PageIndex, PageIndex),
}

impl<'a> Traced<'a> {
    /// An explainer of a run of `job` that has not begun.
    pub fn new(job: &'a Job, sight: Sight) -> Self {
        let touches = job.steps().flat_map(move |step| of_step(job, step));
        let left: Box<dyn Iterator<Item = Touch>> = Box::new(touches);
        Traced {
            explainer: Explainer::new(job, sight),
            left: left.peekable(),
            number: 0,
            is_begun: false,
            copied: BTreeSet::new(),
            fault: None,
            first: lock::of_access(&job.rules),
            sight,
        }
    }

    /// The explanation, once the log has ended.
    pub fn finish(mut self) -> Explanation {
        // A log that was cut off inside a fault still says what came in.
        self.fault.take().into_iter().flatten().for_each(|decision| self.pass_on(decision));
        while self.left.peek().is_some() {
            self.make_next();
        }
        self.explainer.finish()
    }

    /// The access at the front begins.
    fn begin(&mut self) {
        let Some(touch) = self.left.peek().filter(|_| !self.is_begun) else { return };
        self.is_begun = true;
        self.explainer.access(self.number);
        match *touch {
            Touch::Page(index) if self.copied.contains(&index) => {}
            Touch::Page(index) => self.explainer.accessed(index, PageCount(1)),
            Touch::Read(first, end) => self.explainer.accessed(first, end - first),
        }
    }

    /// Makes the access at the front.
    fn make_next(&mut self) {
        self.begin();
        self.left.next();
        self.number += 1;
        self.is_begun = false;
    }

    /// Makes the accesses before the next that `is_it`, and begins that.
    fn up_to(&mut self, is_it: impl Fn(&Touch) -> bool) {
        while self.left.peek().is_some_and(|touch| !is_it(touch)) {
            self.make_next();
        }
        self.begin();
    }

    /// Begins the read of a block that holds page `at`.
    fn up_to_block(&mut self, at: PageIndex) {
        self.up_to(|touch| matches!(*touch, Touch::Read(first, end) if first <= at && at < end));
    }

    /// A fault on `index` was served. An access that needs no fault cannot come to need one without
    /// another fault between, so the next one of this page it is.
    fn end_fault(&mut self, index: PageIndex, decisions: Vec<Decision>) {
        self.up_to(|touch| *touch == Touch::Page(index));
        decisions.into_iter().for_each(|decision| self.pass_on(decision));
        self.make_next();
    }

    fn pass_on(&mut self, decision: Decision) {
        if let Decision::Copied { index } = decision {
            self.copied.insert(index);
        }
        self.explainer.record(decision);
    }
}

impl Log for Traced<'_> {
    fn record(&mut self, decision: Decision) {
        if let Some(fault) = &mut self.fault {
            fault.push(decision);
            if let Decision::Served { index, .. } = decision {
                let decisions = self.fault.take().unwrap_or_default();
                self.end_fault(index, decisions);
            }
            return;
        }
        match decision {
            Decision::Locked { lock } if lock == self.first => self.fault = Some(vec![decision]),
            Decision::Entered { found: Found { index, req, .. }, .. } => {
                self.up_to(|touch| matches!(touch, Touch::Read(_, end) if *end == index + req));
                self.pass_on(decision);
            }
            Decision::NoReadahead { index, .. } => {
                self.up_to_block(index);
                self.pass_on(decision);
            }
            // Where no tracepoint shows that readahead was entered, its window does.
            Decision::Readahead { cause: Cause::ReadStream | Cause::AsyncRead, index, .. }
                if self.sight == Sight::Nothing =>
            {
                self.up_to_block(index);
                self.pass_on(decision);
            }
            _ => self.pass_on(decision),
        }
    }
}

fn of_step<'a>(job: &'a Job, step: &'a ProgramStep) -> Box<dyn Iterator<Item = Touch> + 'a> {
    match step {
        ProgramStep::Touch { mapping, accesses, .. } => {
            let in_file = job.mappings[*mapping].in_file();
            Box::new(job.touches(*mapping, accesses).map(move |page| Touch::Page(in_file(page))))
        }
        ProgramStep::Read { offset_bytes, len_bytes, accesses, .. } => {
            let size = job.page_size();
            Box::new(job.reads(*len_bytes, accesses).map(move |block| {
                let start = offset_bytes + block.offset_bytes;
                let end = (start + block.len_bytes).div_ceil(size);
                Touch::Read(PageIndex(start / size), PageIndex(end))
            }))
        }
        _ => Box::new(std::iter::empty()),
    }
}
