//! Faults and `read(2)` calls in progress: they can pause and resume later.

use std::ops::Range;

use filemap_core::address::entries::MappedFile;
use filemap_core::decision::{Lock, Log};
use filemap_core::fault::read::{ReadCall, ReadView};
use filemap_core::fault::{AccessKind, Fault, FaultResult, Step, View, lock};
use filemap_core::governor::TouchKind;
use filemap_core::page_cache::PageCache;
use filemap_core::readahead::Window;
use filemap_core::rules::VmaLock;
use filemap_core::units::PageIndex;
use filemap_job::waits::Cause;

use crate::Error;
use crate::mm::LockResult;
use crate::open::OpenFile;
use crate::process::{MappedAreas, PageLocation, Process};
use crate::profile::Profile;
use crate::task::Task;
use crate::wait_queue::Pause;
use crate::world::World;

/// A fault in progress.
#[derive(Debug)]
pub struct PendingFault {
    /// Number of the access.
    number: u64,
    at: PageLocation,
    fault: Fault,
    next: NextAction,
    /// The lock held and the VMA it was taken for, if other tasks can wait for it.
    held_lock: Option<(Lock, u64)>,
    /// It has been served, and counts as major for the process.
    is_major: bool,
    /// An access caused it by finding no entry.
    was_missing: bool,
    /// It has read its page, which reclaim must not take before it resumes.
    has_read: bool,
}

/// What a fault does next.
#[derive(Clone, Copy, Debug)]
enum NextAction {
    /// The next step of the rules.
    Step,
    /// The last step, which paused before it was done.
    RetryStep(Step),
    /// Write fault on a read-only entry, under this lock.
    WpFault(Lock, WpAction),
    /// The page is mapped; its private copy is to be charged.
    ChargeCopy,
    /// It has been served and releases its lock.
    Unlock,
}

/// How a write fault on a read-only entry is resolved (`do_wp_page`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WpAction {
    /// The page is copied (`wp_page_copy`).
    Copy,
    /// The page is a private copy that nobody else shares (`wp_page_reuse`).
    Reuse,
}

impl PendingFault {
    /// A new fault of access `number`.
    pub fn new(number: u64, at: PageLocation, access: AccessKind) -> PendingFault {
        let fault = Fault::new(at.index, access);
        PendingFault {
            number,
            at,
            fault,
            next: NextAction::Step,
            held_lock: None,
            is_major: false,
            was_missing: true,
            has_read: false,
        }
    }

    /// A fault requested by MADV_POPULATE_READ.
    pub fn populating(number: u64, at: PageLocation) -> PendingFault {
        let fault = Fault::populating(at.index);
        PendingFault {
            fault,
            was_missing: false,
            ..PendingFault::new(number, at, AccessKind::Read)
        }
    }

    /// A write fault on a page mapped read-only.
    pub fn write_protect(
        number: u64,
        at: PageLocation,
        written: WpAction,
        open: &OpenFile,
    ) -> PendingFault {
        let new = PendingFault::new(number, at, AccessKind::WritePrivate);
        let lock = lock::access_lock(&open.limits.rules);
        PendingFault { next: NextAction::WpFault(lock, written), was_missing: false, ..new }
    }

    /// The page, and whether the fault is major, once served.
    pub fn page(&self) -> (PageIndex, bool) {
        (self.at.index, self.is_major)
    }

    /// The fault as an observer outside the process sees it, once served.
    pub fn observed_touch(&self) -> Option<(PageIndex, TouchKind)> {
        let touch = if self.is_major { TouchKind::Major } else { TouchKind::Minor };
        self.was_missing.then_some((self.at.index, touch))
    }

    /// Looks up the VMA of its page again.
    pub fn refresh_vma(&mut self, row: &MappedAreas) {
        row.find_vma(&mut self.at);
    }

    /// Runs until it is served or has to pause.
    ///
    /// # Errors
    /// If memory is too small for the page.
    pub fn run<C: PageCache>(
        &mut self,
        task: &mut Task<'_, '_, C>,
        open: &mut OpenFile,
    ) -> Result<Option<Pause>, Error> {
        task.world.log.resume(open, self.number);
        match std::mem::replace(&mut self.next, NextAction::Step) {
            NextAction::Step => {}
            NextAction::WpFault(lock, written) => return self.write(lock, written, task, open),
            NextAction::ChargeCopy => return self.charge_copy(task, open),
            NextAction::Unlock => return Ok(self.finish(task)),
            NextAction::RetryStep(step) => {
                if let Some(pause) = self.carry_out(step, true, task, open)? {
                    return Ok(Some(pause));
                }
            }
        }
        let mut goes_on = false;
        loop {
            if task.world.must_yield() {
                self.fault.set_interrupted();
                if self.has_read {
                    task.world.pin_after_read(open, self.at.index);
                }
                return Ok(Some(Pause::YieldInKernel));
            }
            let has_arrived = task.world.process_completions();
            task.world.log.at(task.world.task, task.world.now_ns());
            let (rules, undisturbed) = (&open.limits.rules, goes_on && !has_arrived);
            goes_on = true;
            if let Some(step) = self.fault.step_ahead(undisturbed, rules, &mut task.world.log) {
                if let Some(pause) = self.carry_out(step, false, task, open)? {
                    return Ok(Some(pause));
                }
                continue;
            }
            let step = self.step_with(task, open);
            if let Step::Done(outcome) = step {
                self.record_served(outcome, task, open);
                if self.fault.has_copied() {
                    return self.begin_charge(task, open);
                }
                task.world.check_memory_limit(&task.process.tables)?;
                return Ok(self.finish(task));
            }
            if let Some(pause) = self.carry_out(step, false, task, open)? {
                return Ok(Some(pause));
            }
        }
    }

    /// Releases the lock of a served fault, unless the task has to yield first.
    fn finish<C: PageCache>(&mut self, task: &mut Task<'_, '_, C>) -> Option<Pause> {
        if self.held_lock.is_some() && task.world.must_yield() {
            self.next = NextAction::Unlock;
            return Some(Pause::YieldInKernel);
        }
        self.unlock(task);
        None
    }

    /// Takes a lock. If the task is queued, it requests it again after the wakeup.
    fn lock<C: PageCache>(&mut self, lock: Lock, task: &mut Task<'_, '_, C>) -> LockResult {
        let Task { world, process } = task;
        let vma = self.at.vma.start.0;
        let result = match &mut process.locks {
            None => LockResult::Acquired,
            Some(locks) => {
                let result = locks.read(world.task, lock, vma, world.now_ns());
                self.held_lock = (result == LockResult::Acquired).then_some((lock, vma));
                world.wake(locks.take_woken());
                result
            }
        };
        if result == LockResult::Acquired {
            world.tally.retries += u64::from(self.fault.tries() > 1);
            world.tally.shared += u64::from(lock == Lock::Mmap);
        }
        world.tally.waits += u64::from(result == LockResult::Queued);
        result
    }

    fn unlock<C: PageCache>(&mut self, task: &mut Task<'_, '_, C>) {
        let Task { world, process } = task;
        if let Some((lock, vma)) = self.held_lock.take()
            && let Some(locks) = &mut process.locks
        {
            locks.release(lock, vma, world.now_ns());
            world.wake(locks.take_woken());
        }
    }

    /// The next step that depends on the state of memory.
    #[inline(always)]
    fn step_with<C: PageCache>(&mut self, task: &mut Task<'_, '_, C>, open: &mut OpenFile) -> Step {
        let Task { world, process } = task;
        world.release_pins(open.file, self.at.index);
        let step = self.fault.step_with(&mut View {
            limits: &open.limits,
            vma: &self.at.vma,
            ra: &mut open.ra,
            tables: &mut process.tables,
            cache: &mut world.memory.cache.mapped(open.file, self.at.layer),
            log: &mut world.log,
        });
        if !matches!(step, Step::Lock(_)) {
            // Before its lock is taken, a try has looked up nothing.
            let highest = &mut world.tally.mmap_miss_max;
            *highest = open.ra.mmap_miss.max(*highest);
        }
        step
    }

    /// Carries out `step`. If it has to pause, it is retried later.
    // Inlined so that callers with a known step drop the other arms.
    #[inline(always)]
    fn carry_out<C: PageCache>(
        &mut self,
        step: Step,
        is_retry: bool,
        task: &mut Task<'_, '_, C>,
        open: &mut OpenFile,
    ) -> Result<Option<Pause>, Error> {
        match step {
            Step::Lock(lock) => match self.lock(lock, task) {
                LockResult::Acquired => {}
                LockResult::Refused => {
                    task.world.tally.refused += 1;
                    self.fault.on_lock_refused();
                    return Ok(None);
                }
                LockResult::Queued => {
                    self.next = NextAction::RetryStep(step);
                    self.fault.set_interrupted();
                    return Ok(Some(Pause::Lock(Cause::MmapRead)));
                }
            },
            Step::Unlock => self.unlock(task),
            _ => {}
        }
        let window = (step == Step::Read).then(|| self.fault.window());
        let request = StepRequest { step, is_late: is_retry, first: self.at.index, window };
        let pause = request.execute(open, task.world, task.process)?;
        self.has_read |= pins_page(step, task.world.profile);
        if pause.is_some() {
            self.next = NextAction::RetryStep(step);
            self.fault.set_interrupted();
        }
        Ok(pause)
    }

    /// Handles a write fault under `lock`, or under `mmap_lock` if that is refused.
    fn write<C: PageCache>(
        &mut self,
        mut lock: Lock,
        written: WpAction,
        task: &mut Task<'_, '_, C>,
        open: &OpenFile,
    ) -> Result<Option<Pause>, Error> {
        loop {
            match self.lock(lock, task) {
                LockResult::Acquired => break,
                LockResult::Refused => {
                    task.world.tally.refused += 1;
                    task.world.advance(task.world.profile.cost.fault_ns);
                    lock = Lock::Mmap;
                }
                LockResult::Queued => {
                    self.next = NextAction::WpFault(lock, written);
                    return Ok(Some(Pause::Lock(Cause::MmapRead)));
                }
            }
        }
        match written {
            WpAction::Copy => {
                if !task.copy_mapped(&self.at, open) {
                    return Ok(self.finish(task));
                }
                self.begin_charge(task, open)
            }
            WpAction::Reuse => {
                task.reuse_copy(&self.at, open);
                Ok(self.finish(task))
            }
        }
    }

    /// Begins to charge the private copy that it made.
    fn begin_charge<C: PageCache>(
        &mut self,
        task: &mut Task<'_, '_, C>,
        open: &OpenFile,
    ) -> Result<Option<Pause>, Error> {
        task.world.memory.add_uncharged_copy(open.file, self.at.layer, self.at.index);
        self.charge_copy(task, open)
    }

    /// Charges the private copy, unless it was freed since it was made: MADV_DONTNEED needs no more
    /// than the lock that faults hold.
    fn charge_copy<C: PageCache>(
        &mut self,
        task: &mut Task<'_, '_, C>,
        open: &OpenFile,
    ) -> Result<Option<Pause>, Error> {
        if task.world.must_yield() {
            self.next = NextAction::ChargeCopy;
            return Ok(Some(Pause::YieldInKernel));
        }
        let copy = (open.file, self.at.layer, self.at.index);
        if !task.world.memory.has_uncharged_copy(copy) {
            return Ok(self.finish(task));
        }
        let tables = &task.process.tables;
        let pause = task.world.charge_page(self.at.index, open.file, tables)?;
        if pause.is_none() {
            task.world.memory.remove_uncharged_copy(copy);
        }
        if pause.is_some() {
            self.next = NextAction::ChargeCopy;
            return Ok(pause);
        }
        task.world.check_memory_limit(tables)?;
        Ok(self.finish(task))
    }

    /// Major faults as measured on a kernel: from PGMAJFAULT events, which only a memory cgroup
    /// counts for the run alone, or else from the process's `maj_flt`. Both agree if faults are
    /// served under the VMA lock. Otherwise the retry after a mark counts for the process only, and
    /// a populated page for neither.
    fn major_faults(&self, outcome: FaultResult, open: &OpenFile, has_event: bool) -> u64 {
        let (events, own) = (u64::from(self.fault.misses()), u64::from(outcome.major));
        match open.limits.rules.vma_lock {
            VmaLock::WholeFault => events,
            _ if has_event => events.max(own),
            _ => own,
        }
    }

    fn record_served<C: PageCache>(
        &mut self,
        outcome: FaultResult,
        task: &mut Task<'_, '_, C>,
        open: &OpenFile,
    ) {
        self.is_major = outcome.major;
        let world = &mut *task.world;
        world.tally.retry_misses += u64::from(self.fault.retry_misses());
        world.tally.major_faults += self.major_faults(outcome, open, world.memory.is_memcg_limit());
        world.tally.minor_faults += u64::from(!outcome.major);
        world.advance(world.profile.cost.map_page_ns.saturating_mul(self.fault.mapped().0));
        if !self.fault.is_young() {
            world.memory.cache.mapped(open.file, self.at.layer).touch(self.at.index);
        }
    }
}

/// A `read(2)` in progress.
#[derive(Debug)]
pub struct PendingRead {
    /// Number of the access.
    number: u64,
    read: ReadCall,
    /// The last step, which paused before it was done.
    paused: Option<Step>,
    /// The last step read its page, which reclaim must not take before it resumes.
    has_read: bool,
    /// Byte offsets in the file that are still to be copied.
    left_bytes: Range<u64>,
}

/// Bytes that `copy_page_ns` of the machine profile is for.
const COPIED_BYTES: u64 = 4096;

impl PendingRead {
    /// A new read of access `number`.
    pub fn new(number: u64, offset: u64, bytes: u64, open: &OpenFile) -> PendingRead {
        let read = ReadCall::new(offset, bytes, open.size_bytes, &open.limits);
        let left_bytes = offset..offset.saturating_add(bytes).min(open.size_bytes).max(offset);
        PendingRead { number, read, paused: None, has_read: false, left_bytes }
    }

    /// Passes the time to copy the bytes before `end`; the device reads on meanwhile.
    fn copy_before<C: PageCache>(&mut self, end: u64, world: &mut World<'_, C>) {
        let end = end.clamp(self.left_bytes.start, self.left_bytes.end);
        let bytes = u128::from(end - self.left_bytes.start);
        self.left_bytes.start = end;
        let copy_ns = u128::from(world.profile.cost.copy_page_ns) * bytes;
        let copy_ns = u64::try_from(copy_ns / u128::from(COPIED_BYTES)).unwrap_or(u64::MAX);
        if copy_ns > 0 {
            world.advance(copy_ns);
            world.process_completions();
        }
    }

    /// Runs until it is done or has to pause.
    ///
    /// # Errors
    /// As for [`PendingFault::run`].
    pub fn run<C: PageCache>(
        &mut self,
        task: &mut Task<'_, '_, C>,
        open: &mut OpenFile,
    ) -> Result<Option<Pause>, Error> {
        let Task { world, process } = task;
        world.log.resume(open, self.number);
        loop {
            if world.must_yield() {
                if self.has_read {
                    world.pin_after_read(open, self.read.position());
                }
                return Ok(Some(Pause::YieldInKernel));
            }
            world.process_completions();
            world.log.at(world.task, world.now_ns());
            let is_late = self.paused.is_some();
            let step = match self.paused.take() {
                Some(step) => Some(step),
                None => self.read.step(&mut ReadView {
                    limits: &open.limits,
                    ra: &mut open.ra,
                    cache: &mut world.memory.cache.file(open.file),
                    log: &mut world.log,
                }),
            };
            let Some(step) = step else {
                self.copy_before(u64::MAX, world);
                return world.check_memory_limit(&process.tables).map(|()| None);
            };
            self.copy_before(self.read.position().0 * open.limits.arch.page_size, world);
            let window = (step == Step::Read).then(|| self.read.window());
            let request = StepRequest { step, is_late, first: self.read.position(), window };
            if let Some(pause) = request.execute(open, world, process)? {
                self.paused = Some(step);
                return Ok(Some(pause));
            }
            self.has_read = pins_page(step, world.profile);
        }
    }
}

/// Whether the folio read by `step` stays in memory until the task resumes: the task holds a
/// reference to a page that it adds on its own, and looks up a page of a window right away unless
/// it can be preempted before that.
fn pins_page(step: Step, profile: &Profile) -> bool {
    match step {
        Step::ReadPage(_) => true,
        Step::Read => !profile.voluntary_preemption,
        _ => false,
    }
}

/// A step to be carried out.
struct StepRequest<'w> {
    step: Step,
    /// It paused, and is retried.
    is_late: bool,
    /// Current page of the fault or read.
    first: PageIndex,
    /// The window to read, for [`Step::Read`].
    window: Option<&'w Window>,
}

impl StepRequest<'_> {
    /// Carries out the step. If it has to pause, it is to be retried.
    #[inline(always)]
    fn execute<C: PageCache>(
        self,
        open: &mut OpenFile,
        world: &mut World<'_, C>,
        process: &Process,
    ) -> Result<Option<Pause>, Error> {
        let StepRequest { step, is_late, first, window } = self;
        let tables = &process.tables;
        match step {
            Step::Lock(_) => world.advance(world.profile.cost.fault_ns),
            Step::Read => {
                let window = window.expect("the step asks for one");
                return Ok(world.read_window(window, first, open, tables));
            }
            Step::ReadPage(index) => return world.read_page(index, is_late, open, tables),
            Step::Wait(index) => return Ok(world.wait(open, index)),
            Step::Unlock => world.tally.lock_drops += 1,
            Step::Done(_) => {}
        }
        Ok(None)
    }
}
