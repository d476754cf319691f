//! The accesses of a job, taken one by one as its log goes on.

use std::iter::Peekable;
use std::rc::Rc;

use filemap_core::units::PageIndex;
use filemap_job::Job;
use filemap_job::program::ProgramStep;

use super::pages::Pages;
use super::parts::Parts;

/// Accesses that are still to come. A log shows those that fault or read; the others lie between.
pub(super) struct Touches<'a> {
    left: Peekable<Box<dyn Iterator<Item = Touch> + 'a>>,
    /// The next page of the read at the front that is not copied out yet.
    cursor: Option<PageIndex>,
    /// Accesses done.
    pub(super) done: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touch {
    Page(PageIndex),
    /// From the first page up to before the second.
    Read(PageIndex, PageIndex),
}

impl<'a> Touches<'a> {
    pub(super) fn new(job: &'a Job) -> Self {
        let parts = Rc::new(Parts::of(job));
        let touches = job.steps().flat_map(move |step| of_step(job, step, &parts));
        let left: Box<dyn Iterator<Item = Touch>> = Box::new(touches);
        Touches { left: left.peekable(), cursor: None, done: 0 }
    }

    /// Makes the accesses before the one that faults at `index`. An access that needs no fault
    /// cannot come to need one without another fault between, so the next one of this page it is.
    pub(super) fn up_to_fault(&mut self, index: PageIndex, pages: &mut Pages) {
        while self.left.peek().is_some_and(|touch| *touch != Touch::Page(index)) {
            self.make_next(pages);
        }
    }

    /// Makes the accesses before the read up to before page `end`, and this as far as page `at`.
    pub(super) fn up_to_read(&mut self, at: PageIndex, end: PageIndex, pages: &mut Pages) {
        self.up_to(at, |_, known| known == end, pages);
    }

    /// Makes the accesses before the read of a block that holds page `at`, and this as far.
    pub(super) fn up_to_block(&mut self, at: PageIndex, pages: &mut Pages) {
        self.up_to(at, |first, end| first <= at && at < end, pages);
    }

    fn up_to(
        &mut self,
        at: PageIndex,
        is_it: impl Fn(PageIndex, PageIndex) -> bool,
        pages: &mut Pages,
    ) {
        let is_it = |touch: &Touch| matches!(*touch, Touch::Read(first, end) if is_it(first, end));
        while self.left.peek().is_some_and(|touch| !is_it(touch)) {
            self.make_next(pages);
        }
        if let Some(Touch::Read(first, _)) = self.left.peek() {
            let from = self.cursor.unwrap_or(*first);
            (from.0..at.0).for_each(|index| pages.touch(PageIndex(index)));
            self.cursor = Some(from.max(at));
        }
    }

    /// Makes the next access.
    pub(super) fn make_next(&mut self, pages: &mut Pages) {
        match self.left.next() {
            Some(Touch::Page(index)) => pages.touch(index),
            Some(Touch::Read(first, end)) => {
                let from = self.cursor.unwrap_or(first);
                (from.0..end.0).for_each(|index| pages.touch(PageIndex(index)));
            }
            None => return,
        }
        self.cursor = None;
        self.done += 1;
        if let Some(recorder) = &mut pages.recorder {
            recorder.accessed(self.done);
        }
    }

    /// Makes the rest.
    pub(super) fn make_all(&mut self, pages: &mut Pages) {
        while self.left.peek().is_some() {
            self.make_next(pages);
        }
    }
}

fn of_step<'a>(
    job: &'a Job,
    step: &'a ProgramStep,
    parts: &Rc<Parts>,
) -> Box<dyn Iterator<Item = Touch> + 'a> {
    match step {
        ProgramStep::Touch { mapping, accesses, .. } => {
            let parts = Rc::clone(parts);
            let pages = job.touches(*mapping, accesses);
            Box::new(pages.map(move |page| Touch::Page(parts.locate(page))))
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
