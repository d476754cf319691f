//! Accesses under way: a fault or a `read(2)` that can pause, and goes on later.

use filemap_core::address::entries::MappedFile;
use filemap_core::decision::{Lock, Log};
use filemap_core::fault::read::{Read, ReadView};
use filemap_core::fault::{Access, Fault, Outcome, Step, View, lock};
use filemap_core::governor::Touch;
use filemap_core::page_cache::PageCache;
use filemap_core::readahead::Window;
use filemap_core::rules::VmaLock;
use filemap_core::units::PageIndex;
use filemap_job::waits::Cause;

use crate::Error;
use crate::mm::Taken;
use crate::open::OpenFile;
use crate::process::{Place, Process, Row};
use crate::profile::Profile;
use crate::task::Task;
use crate::waiting::Pause;
use crate::world::World;

/// A fault under way.
#[derive(Debug)]
pub struct FaultUnderWay {
    /// Number of the access.
    number: u64,
    at: Place,
    fault: Fault,
    next: Next,
    /// The lock that it holds, and the VMA that it took it in, where others can wait for that.
    held: Option<(Lock, u64)>,
    /// It was served, and counts as major in the process's own accounting.
    is_major: bool,
    /// An access made it that found no entry.
    is_missing: bool,
    /// It has read its page, which it does not lose before it goes on.
    has_read: bool,
}

/// What a fault does next.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// A step.
    Step,
    /// What the last step asked for, which has paused.
    CarryOut(Step),
    /// It writes to a page that is mapped to be read, under this lock.
    Write(Lock, Written),
    /// The page is mapped: its private copy takes room.
    Hold,
    /// It was served, and drops its lock.
    Unlock,
}

/// What becomes of a page that is mapped to be read, and is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is copied.
    Copied,
    /// It is a private copy that nobody else has any more, and is kept.
    Reused,
}

impl FaultUnderWay {
    /// A fault of access `number`, which begins.
    pub fn new(number: u64, at: Place, access: Access) -> FaultUnderWay {
        let fault = Fault::new(at.index, access);
        FaultUnderWay {
            number,
            at,
            fault,
            next: Next::Step,
            held: None,
            is_major: false,
            is_missing: true,
            has_read: false,
        }
    }

    /// A fault that no access made, but advice asks for.
    pub fn populating(number: u64, at: Place) -> FaultUnderWay {
        let fault = Fault::populating(at.index);
        FaultUnderWay { fault, is_missing: false, ..FaultUnderWay::new(number, at, Access::Read) }
    }

    /// A write to a page that is mapped to be read.
    pub fn writing(number: u64, at: Place, written: Written, open: &OpenFile) -> FaultUnderWay {
        let new = FaultUnderWay::new(number, at, Access::WritePrivate);
        let lock = lock::of_access(&open.limits.rules);
        FaultUnderWay { next: Next::Write(lock, written), is_missing: false, ..new }
    }

    /// What is seen of it from outside, once it was served.
    pub fn seen(&self) -> Option<(PageIndex, Touch)> {
        let touch = if self.is_major { Touch::Major } else { Touch::Minor };
        self.is_missing.then_some((self.at.index, touch))
    }

    /// Looks the VMA of its page up again.
    pub fn find_vma(&mut self, row: &Row) {
        row.find_vma(&mut self.at);
    }

    /// Goes on until it is served, or has to pause.
    ///
    /// # Errors
    /// When the memory is too small to hold what it needs.
    pub fn serve<C: PageCache, L: Log>(
        &mut self,
        task: &mut Task<'_, '_, C, L>,
        open: &mut OpenFile,
    ) -> Result<Option<Pause>, Error> {
        task.world.log.resume(open, self.number);
        match std::mem::replace(&mut self.next, Next::Step) {
            Next::Step => {}
            Next::Write(lock, written) => return self.write(lock, written, task, open),
            Next::Hold => return self.hold_copy(task, open),
            Next::Unlock => return Ok(self.end(task)),
            Next::CarryOut(step) => {
                if let Some(pause) = self.carry_out(step, true, task, open)? {
                    return Ok(Some(pause));
                }
            }
        }
        let mut goes_on = false;
        loop {
            if task.world.turn_is_over() {
                self.fault.interrupted();
                if self.has_read {
                    task.world.refer(open, self.at.index);
                }
                return Ok(Some(Pause::InKernel));
            }
            let has_arrived = task.world.arrivals();
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
                self.served(outcome, task, open);
                if self.fault.copied() {
                    return self.hold_copy(task, open);
                }
                task.world.check_held(&task.process.tables)?;
                return Ok(self.end(task));
            }
            if let Some(pause) = self.carry_out(step, false, task, open)? {
                return Ok(Some(pause));
            }
        }
    }

    /// It was served: it drops the lock that it holds, when its turn comes.
    fn end<C: PageCache, L: Log>(&mut self, task: &mut Task<'_, '_, C, L>) -> Option<Pause> {
        if self.held.is_some() && task.world.turn_is_over() {
            self.next = Next::Unlock;
            return Some(Pause::InKernel);
        }
        self.unlock(task);
        None
    }

    /// Takes a lock. Where that has to be waited for, it is asked for again later.
    fn lock<C: PageCache, L: Log>(&mut self, lock: Lock, task: &mut Task<'_, '_, C, L>) -> Taken {
        let Task { world, process } = task;
        let vma = self.at.vma.start.0;
        let taken = match &mut process.locks {
            None => Taken::Has,
            Some(locks) => {
                let taken = locks.read(world.task, lock, vma, world.now_ns());
                self.held = (taken == Taken::Has).then_some((lock, vma));
                world.wake(locks.take_woken());
                taken
            }
        };
        if taken == Taken::Has {
            world.tally.retries += u64::from(self.fault.tries() > 1);
            world.tally.shared += u64::from(lock == Lock::Mmap);
        }
        world.tally.waits += u64::from(taken == Taken::Waits);
        taken
    }

    fn unlock<C: PageCache, L: Log>(&mut self, task: &mut Task<'_, '_, C, L>) {
        let Task { world, process } = task;
        if let Some((lock, vma)) = self.held.take()
            && let Some(locks) = &mut process.locks
        {
            locks.release(lock, vma, world.now_ns());
            world.wake(locks.take_woken());
        }
    }

    /// The next step that depends on what the fault sees.
    #[inline(always)]
    fn step_with<C: PageCache, L: Log>(
        &mut self,
        task: &mut Task<'_, '_, C, L>,
        open: &mut OpenFile,
    ) -> Step {
        let Task { world, process } = task;
        world.let_go(open.file, self.at.index);
        let step = self.fault.step_with(&mut View {
            limits: &open.limits,
            vma: &self.at.vma,
            ra: &mut open.ra,
            tables: &mut process.tables,
            cache: &mut world.memory.cache.mapped(open.file, self.at.layer),
            log: &mut world.log,
        });
        if !matches!(step, Step::Lock(_)) {
            // A try that asks for its lock has looked nothing up yet.
            let highest = &mut world.tally.mmap_miss_max;
            *highest = open.ra.mmap_miss.max(*highest);
        }
        step
    }

    /// Does what `step` asks for. Where that has to pause, it is carried out later.
    // Where a caller knows the step, the others are left out.
    #[inline(always)]
    fn carry_out<C: PageCache, L: Log>(
        &mut self,
        step: Step,
        is_late: bool,
        task: &mut Task<'_, '_, C, L>,
        open: &mut OpenFile,
    ) -> Result<Option<Pause>, Error> {
        match step {
            Step::Lock(lock) => match self.lock(lock, task) {
                Taken::Has => {}
                Taken::Refused => {
                    task.world.tally.refused += 1;
                    self.fault.refused();
                    return Ok(None);
                }
                Taken::Waits => {
                    self.next = Next::CarryOut(step);
                    self.fault.interrupted();
                    return Ok(Some(Pause::Lock(Cause::MmapRead)));
                }
            },
            Step::Unlock => self.unlock(task),
            _ => {}
        }
        let window = (step == Step::Read).then(|| self.fault.window());
        let asked = Asked { step, is_late, first: self.at.index, window };
        let pause = asked.by_world(open, task.world, task.process)?;
        self.has_read |= keeps_page(step, task.world.profile);
        if pause.is_some() {
            self.next = Next::CarryOut(step);
            self.fault.interrupted();
        }
        Ok(pause)
    }

    /// Writes to the page under `lock`, or under `mmap_lock` where that is refused.
    fn write<C: PageCache, L: Log>(
        &mut self,
        mut lock: Lock,
        written: Written,
        task: &mut Task<'_, '_, C, L>,
        open: &OpenFile,
    ) -> Result<Option<Pause>, Error> {
        loop {
            match self.lock(lock, task) {
                Taken::Has => break,
                Taken::Refused => {
                    task.world.tally.refused += 1;
                    task.world.pass(task.world.profile.cost.fault_ns);
                    lock = Lock::Mmap;
                }
                Taken::Waits => {
                    self.next = Next::Write(lock, written);
                    return Ok(Some(Pause::Lock(Cause::MmapRead)));
                }
            }
        }
        match written {
            Written::Copied => {
                task.copy_mapped(&self.at, open);
                self.hold_copy(task, open)
            }
            Written::Reused => {
                task.reuse_copy(&self.at, open);
                Ok(self.end(task))
            }
        }
    }

    /// The private copy takes room.
    fn hold_copy<C: PageCache, L: Log>(
        &mut self,
        task: &mut Task<'_, '_, C, L>,
        open: &OpenFile,
    ) -> Result<Option<Pause>, Error> {
        if task.world.turn_is_over() {
            self.next = Next::Hold;
            return Ok(Some(Pause::InKernel));
        }
        let tables = &task.process.tables;
        let pause = task.world.hold_page(self.at.index, open.file, tables)?;
        if pause.is_some() {
            self.next = Next::Hold;
            return Ok(pause);
        }
        task.world.check_held(tables)?;
        Ok(self.end(task))
    }

    /// Major faults as a run on the kernel counts them: by the event, which only a memory cgroup
    /// tells for the run alone, or else by the process's own count. These agree where faults are
    /// served under the lock of their VMA. Elsewhere the retry after a mark is one of the
    /// process's own, and a page that is populated is none.
    fn major_faults(&self, outcome: Outcome, open: &OpenFile, has_event: bool) -> u64 {
        let (events, own) = (u64::from(self.fault.misses()), u64::from(outcome.major));
        match open.limits.rules.vma_lock {
            VmaLock::WholeFault => events,
            _ if has_event => events.max(own),
            _ => own,
        }
    }

    fn served<C: PageCache, L: Log>(
        &mut self,
        outcome: Outcome,
        task: &mut Task<'_, '_, C, L>,
        open: &OpenFile,
    ) {
        self.is_major = outcome.major;
        let world = &mut *task.world;
        world.tally.retry_misses += u64::from(self.fault.retry_misses());
        world.tally.major_faults += self.major_faults(outcome, open, world.memory.is_cgroups());
        world.tally.minor_faults += u64::from(!outcome.major);
        world.pass(world.profile.cost.map_page_ns.saturating_mul(self.fault.mapped().0));
        if !self.fault.is_young() {
            world.memory.cache.mapped(open.file, self.at.layer).touch(self.at.index);
        }
    }
}

/// A `read(2)` under way.
#[derive(Debug)]
pub struct ReadUnderWay {
    /// Number of the access.
    number: u64,
    read: Read,
    /// What the last step asked for, where that has paused.
    paused: Option<Step>,
    /// That was to read its page, which it does not lose before it goes on.
    has_read: bool,
}

impl ReadUnderWay {
    /// A read of access `number`, which begins.
    pub fn new(number: u64, offset: u64, bytes: u64, open: &OpenFile) -> ReadUnderWay {
        let read = Read::new(offset, bytes, open.size_bytes, &open.limits);
        ReadUnderWay { number, read, paused: None, has_read: false }
    }

    /// Goes on until it is done, or has to pause.
    ///
    /// # Errors
    /// As for [`FaultUnderWay::serve`].
    pub fn read_on<C: PageCache, L: Log>(
        &mut self,
        task: &mut Task<'_, '_, C, L>,
        open: &mut OpenFile,
    ) -> Result<Option<Pause>, Error> {
        let Task { world, process } = task;
        world.log.resume(open, self.number);
        loop {
            if world.turn_is_over() {
                if self.has_read {
                    world.refer(open, self.read.position());
                }
                return Ok(Some(Pause::InKernel));
            }
            world.arrivals();
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
                return world.check_held(&process.tables).map(|()| None);
            };
            let window = (step == Step::Read).then(|| self.read.window());
            let asked = Asked { step, is_late, first: self.read.position(), window };
            if let Some(pause) = asked.by_world(open, world, process)? {
                self.paused = Some(step);
                return Ok(Some(pause));
            }
            self.has_read = keeps_page(step, world.profile);
        }
    }
}

/// Whether what `step` read stays in memory until the task goes on: it refers to a page that it
/// adds by itself, and looks for the page of a window at once where it keeps its CPU till then.
fn keeps_page(step: Step, profile: &Profile) -> bool {
    match step {
        Step::ReadPage(_) => true,
        Step::Read => !profile.voluntary_preemption,
        _ => false,
    }
}

/// What a step asked for.
struct Asked<'w> {
    step: Step,
    /// It has paused, and is asked for again.
    is_late: bool,
    /// The page that the fault or the read is at.
    first: PageIndex,
    /// The window that is to be read, where the step is [`Step::Read`].
    window: Option<&'w Window>,
}

impl Asked<'_> {
    /// Lets the world do it. Where that has to pause, it is to be asked for again.
    #[inline(always)]
    fn by_world<C: PageCache, L: Log>(
        self,
        open: &mut OpenFile,
        world: &mut World<'_, C, L>,
        process: &Process,
    ) -> Result<Option<Pause>, Error> {
        let Asked { step, is_late, first, window } = self;
        let tables = &process.tables;
        match step {
            Step::Lock(_) => world.pass(world.profile.cost.fault_ns),
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
