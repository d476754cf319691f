//! Touches, `read(2)` calls and MADV_POPULATE_READ: the steps that access a file page by page.

use std::ops::Range;

use filemap_core::decision::{Log, TaskWork};
use filemap_core::fault;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::accesses::{Accesses, Read, Reads};
use filemap_job::program::Access;

use super::cursor::StepId;
use super::run::ProgramRun;
use crate::Error;
use crate::open::OpenFile;
use crate::pending::{PendingFault, PendingRead, WpAction};
use crate::process::{MappedAreas, PageLocation};
use crate::task::{Task, TouchResult};
use crate::wait_queue::Pause;
use crate::world::World;

/// The touches of a step.
#[derive(Debug)]
pub(super) struct TouchLoop<'p> {
    pub(super) mapping: usize,
    pub(super) pages: Accesses<'p>,
    /// Page of the current access.
    pub(super) page: u64,
    /// Page of the next access, if the thread had to yield first: a step ends with its last access,
    /// not when the thread runs again.
    pub(super) next: Option<u64>,
    /// First page of the mapping past the end of the file.
    pub(super) first_past_eof: u64,
    pub(super) access: Access,
    pub(super) think_time: ThinkTime,
    pub(super) fault: Option<PendingFault>,
    /// When the current fault began.
    pub(super) began_ns: u64,
}

/// The `read(2)` calls of a step.
#[derive(Debug)]
pub(super) struct ReadLoop {
    pub(super) open: usize,
    pub(super) offset_bytes: u64,
    pub(super) blocks: Reads,
    /// Next block, as in [`TouchLoop`].
    pub(super) next: Option<Read>,
    pub(super) thinking: ThinkTime,
    pub(super) read: Option<PendingRead>,
    /// When the current read began.
    pub(super) began_ns: u64,
    /// Offset and length of the current read.
    pub(super) range: (u64, u64),
    /// O_DIRECT.
    pub(super) is_direct: bool,
    /// Arrival time of the O_DIRECT read in progress.
    pub(super) arrives_ns: Option<u64>,
}

/// Think time after each access.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThinkTime {
    pub(super) each_ns: u64,
    pub(super) left_ns: u64,
}

/// Why a loop of touches stopped.
enum TouchStop {
    /// An access that did not simply hit.
    Needs(TouchResult),
    /// A page past the end of the file.
    PastEof(u64),
    /// The thread has to yield.
    Yield,
    /// All pages were touched.
    End,
}

impl TouchLoop<'_> {
    /// Runs until all pages are touched or the thread has to pause.
    pub(super) fn run<C: PageCache>(
        &mut self,
        at: StepId,
        running: &mut ProgramRun<'_, '_, C>,
    ) -> Result<Option<Pause>, Error> {
        if let Some(fault) = &mut self.fault {
            if let Some(pause) = running.serve_fault(at.process, self.mapping, fault)? {
                return Ok(Some(pause));
            }
            let page = fault.page();
            self.fault = None;
            self.end_fault(page, running);
            let (row, open, mut task) = running.mapping_task(at.process, self.mapping);
            self.end_access(row, open, &mut task);
        }
        loop {
            if let Some(pause) = running.repay(at.process) {
                return Ok(Some(pause));
            }
            let (row, open, mut task) = running.mapping_task(at.process, self.mapping);
            match self.touch(row, open, &mut task) {
                TouchStop::Needs(takes) => {
                    let number = task.world.accesses_begun() - 1;
                    let (place, access) = (row.locate(self.page), fault_access(self.access));
                    // Most faults finish immediately and are never moved.
                    let mut fault = match takes {
                        TouchResult::WpFault(written) => {
                            PendingFault::write_protect(number, place, written, open)
                        }
                        _ => PendingFault::new(number, place, access),
                    };
                    self.began_ns = running.world.now_ns();
                    if let Some(pause) =
                        running.serve_fault(at.process, self.mapping, &mut fault)?
                    {
                        self.fault = Some(fault);
                        return Ok(Some(pause));
                    }
                    self.end_fault(fault.page(), running);
                }
                TouchStop::PastEof(page) => {
                    let step = running.job.step_name(at.thread, at.step);
                    return Err(running.bus_error(step, self.mapping, page));
                }
                TouchStop::Yield => return Ok(Some(Pause::Yield)),
                TouchStop::End => return Ok(None),
            }
            let (row, open, mut task) = running.mapping_task(at.process, self.mapping);
            self.end_access(row, open, &mut task);
        }
    }

    /// Records when a fault on a page was served, and whether it was major.
    fn end_fault<C: PageCache>(
        &self,
        (index, major): (PageIndex, bool),
        running: &mut ProgramRun<'_, '_, C>,
    ) {
        let (from_ns, until_ns) = (self.began_ns, running.world.now_ns());
        running.latencies.faults.add(until_ns - from_ns);
        if running.world.log.is_kept() {
            let file = running.opens[running.job.mappings[self.mapping].open].file;
            let work = TaskWork::Fault { file, index, major };
            running.world.log.ended(running.world.task, work, from_ns, until_ns);
        }
    }

    /// Touches pages up to the next fault.
    fn touch<C: PageCache>(
        &mut self,
        row: &mut MappedAreas,
        open: &OpenFile,
        task: &mut Task<'_, '_, C>,
    ) -> TouchStop {
        let access = fault_access(self.access);
        loop {
            if !self.think_time.elapse(task.world) {
                return TouchStop::Yield;
            }
            if task.world.is_past_end() {
                return TouchStop::End;
            }
            let Some(page) = self.next.take().or_else(|| self.pages.next()) else {
                return TouchStop::End;
            };
            let is_over = match self.access {
                Access::Read | Access::Call => task.world.is_far_ahead(),
                Access::Write => task.world.must_yield(),
            };
            if is_over {
                self.next = Some(page);
                return TouchStop::Yield;
            }
            if page >= self.first_past_eof {
                return TouchStop::PastEof(page);
            }
            self.page = page;
            let place = row.locate(page);
            let mut takes = task.begin_touch(&place, access, open);
            if self.access == Access::Write {
                let area = row.single_area();
                area.mapping.record_copy(place.index);
                if !area.forked.is_empty() && area.forked.remove(place.index) {
                    takes = TouchResult::WpFault(WpAction::Reuse);
                }
            }
            if takes != TouchResult::Mapped {
                return TouchStop::Needs(takes);
            }
            self.end_access(row, open, task);
        }
    }

    /// Ends an access whose page is mapped; code is looked up in the TLB.
    fn end_access<C: PageCache>(
        &mut self,
        row: &MappedAreas,
        open: &OpenFile,
        task: &mut Task<'_, '_, C>,
    ) {
        if self.access == Access::Call {
            task.look_up_code(&row.locate(self.page), open);
        }
        self.think_time.start();
    }
}

/// The access as a fault sees it.
fn fault_access(access: Access) -> fault::AccessKind {
    match access {
        Access::Read | Access::Call => fault::AccessKind::Read,
        Access::Write => fault::AccessKind::WritePrivate,
    }
}

impl ReadLoop {
    /// Runs until all blocks are read or the thread has to pause.
    pub(super) fn run<C: PageCache>(
        &mut self,
        process: usize,
        running: &mut ProgramRun<'_, '_, C>,
    ) -> Result<Option<Pause>, Error> {
        loop {
            if let Some(pause) = self.read.is_none().then(|| running.repay(process)).flatten() {
                return Ok(Some(pause));
            }
            let (open, mut task) = running.open_task(process, self.open);
            if let Some(arrives_ns) = self.arrives_ns {
                if task.world.now_ns() < arrives_ns {
                    return Ok(Some(Pause::DirectIo(arrives_ns)));
                }
                self.arrives_ns = None;
                self.end_read(running);
                continue;
            }
            if let Some(read) = &mut self.read {
                if let Some(pause) = read.run(&mut task, open)? {
                    return Ok(Some(pause));
                }
                self.read = None;
                self.end_read(running);
                continue;
            }
            if !self.thinking.elapse(task.world) {
                return Ok(Some(Pause::Yield));
            }
            if task.world.is_past_end() {
                return Ok(None);
            }
            let block = self.next.take().or_else(|| self.blocks.next());
            let Some(block) = block else { return Ok(None) };
            if task.world.must_yield() {
                self.next = Some(block);
                return Ok(Some(Pause::Yield));
            }
            self.began_ns = task.world.now_ns();
            let offset = self.offset_bytes + block.offset_bytes;
            self.range = (offset, block.len_bytes);
            if self.is_direct {
                let arrives_ns = task.begin_direct(block.len_bytes, open);
                task.world.log.requests_changed(task.world.now_ns(), 1);
                task.world.log.requests_changed(arrives_ns, -1);
                self.arrives_ns = Some(arrives_ns);
                continue;
            }
            let mut read = task.begin_read(offset, block.len_bytes, open);
            if let Some(pause) = read.run(&mut task, open)? {
                self.read = Some(read);
                return Ok(Some(pause));
            }
            self.end_read(running);
        }
    }

    fn end_read<C: PageCache>(&mut self, running: &mut ProgramRun<'_, '_, C>) {
        let (from_ns, until_ns) = (self.began_ns, running.world.now_ns());
        running.latencies.reads.add(until_ns - from_ns);
        if running.world.log.is_kept() {
            let (offset_bytes, length_bytes) = self.range;
            let file = running.opens[self.open].file;
            let work = TaskWork::Read { file, offset_bytes, length_bytes };
            running.world.log.ended(running.world.task, work, from_ns, until_ns);
        }
        self.thinking.start();
    }
}

impl ThinkTime {
    /// Starts the think time after an access.
    fn start(&mut self) {
        self.left_ns = self.each_ns;
    }

    /// Passes the think time, and settles the device if the timing says so. `false` if the time
    /// slice ends first.
    fn elapse<C: PageCache>(&mut self, world: &mut World<'_, C>) -> bool {
        if self.left_ns > 0 {
            let until_ns = world.ends_ns.saturating_sub(world.now_ns());
            self.left_ns = world.think(self.left_ns.min(until_ns));
            if self.left_ns > 0 {
                return false;
            }
        }
        world.settle();
        true
    }
}

/// The pages of a mapping still to be populated.
#[derive(Debug)]
pub struct PopulateLoop {
    mapping: usize,
    pages: Range<u64>,
    /// The current page and its fault.
    fault: Option<(PageLocation, PendingFault)>,
}

impl PopulateLoop {
    /// `pages` pages of a mapping, from page `first`.
    pub fn new(mapping: usize, first: PageCount, pages: PageCount) -> PopulateLoop {
        PopulateLoop { mapping, pages: first.0..(first + pages).0, fault: None }
    }

    /// Runs until all pages are mapped or the thread has to pause.
    ///
    /// # Errors
    /// If memory is too small for a single page.
    pub fn run<C: PageCache>(
        &mut self,
        process: usize,
        running: &mut ProgramRun<'_, '_, C>,
    ) -> Result<Option<Pause>, Error> {
        loop {
            if let Some((at, fault)) = &mut self.fault {
                if let Some(pause) = running.serve_fault(process, self.mapping, fault)? {
                    return Ok(Some(pause));
                }
                let (_, open, mut task) = running.mapping_task(process, self.mapping);
                task.mark_populated(at, open);
                self.fault = None;
                running.world.settle();
            }
            if running.world.must_yield() {
                return Ok(Some(Pause::Yield));
            }
            let Some(page) = self.pages.next() else {
                running.world.settle();
                return Ok(None);
            };
            let (row, open, mut task) = running.mapping_task(process, self.mapping);
            let at = row.locate(page);
            match task.begin_populating(&at, open) {
                Some(fault) => self.fault = Some((at, fault)),
                None => task.mark_populated(&at, open),
            }
        }
    }
}
