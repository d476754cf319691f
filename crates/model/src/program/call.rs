//! System calls that change mappings, and therefore take `mmap_lock`.

use filemap_core::address::entries::MappedFile;
use filemap_core::address::mapping::VmaChange;
use filemap_core::address::protection::Protection;
use filemap_core::address::vma::Vma;
use filemap_core::cache::by_word;
use filemap_core::decision::Lock;
use filemap_core::fault::lock;
use filemap_core::page_cache::PageCache;
use filemap_core::units::PageIndex;
use filemap_job::program::{Madvise, ProgramStep};
use filemap_job::waits::Cause;

use super::cursor::StepId;
use super::run::{ProcessSpace, ProgramRun};
use crate::mm::{Holder, LockResult};
use crate::process::{MappedArea, MappedAreas};
use crate::wait_queue::Pause;

/// The change made by `munmap(2)` of part of a mapping.
const UNMAPPED: VmaChange = VmaChange::Protection(Protection::Unmapped);

/// A system call in progress.
#[derive(Debug)]
pub(super) struct MmapLockCall<'p> {
    step: &'p ProgramStep,
    began_ns: u64,
    stage: CallStage,
    /// The lock that it holds for reading: `mmap_lock`, or the lock of a VMA.
    held: (Lock, u64),
    /// Number of VMAs that it has marked.
    marked: usize,
    /// Remaining time for changing page-table entries, in nanoseconds. The kernel reschedules in
    /// between.
    busy_ns: u64,
}

/// Progress of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallStage {
    /// Requests `mmap_lock`.
    Acquire,
    /// Spins for the lock; if readers hold it, until this time.
    Spin(Option<u64>),
    /// Gave up spinning.
    Queue,
    /// Was woken, either to retry or already holding the lock.
    Retry,
    /// Holds the lock for writing, and marks VMAs.
    MarkVmas,
    /// Changes the mappings.
    VmaChange,
    /// Releases the lock, or downgrades it.
    Unlock,
    /// Zaps page-table entries while holding the lock for reading.
    Zap,
    /// Waits for the forked child to exit at this time.
    Child(u64),
}

impl<'p> MmapLockCall<'p> {
    pub(super) fn new(step: &'p ProgramStep, began_ns: u64) -> MmapLockCall<'p> {
        MmapLockCall {
            step,
            began_ns,
            stage: CallStage::Acquire,
            held: (Lock::Mmap, 0),
            marked: 0,
            busy_ns: 0,
        }
    }

    /// Runs until the call is done or the thread has to pause.
    pub(super) fn run<C: PageCache>(
        &mut self,
        at: StepId,
        running: &mut ProgramRun<'_, '_, C>,
    ) -> Option<Pause> {
        loop {
            if self.busy_ns > 0 {
                self.busy_ns = running.world.think(self.busy_ns);
                if self.busy_ns > 0 {
                    return Some(Pause::Yield);
                }
                if running.world.profile.cpus_in_turn {
                    return Some(Pause::TlbShootdown);
                }
            }
            let is_first = matches!(self.stage, CallStage::Acquire | CallStage::Spin(_));
            if !is_first && running.world.must_yield() {
                return Some(Pause::YieldInKernel);
            }
            self.stage = match self.stage {
                CallStage::Acquire if self.begin_spin(at, running) => CallStage::Spin(None),
                CallStage::Spin(until_ns) => match self.spin(until_ns, at, running) {
                    CallStage::Spin(until_ns) => {
                        self.stage = CallStage::Spin(until_ns);
                        return Some(Pause::Spin);
                    }
                    stage => stage,
                },
                CallStage::Acquire | CallStage::Retry | CallStage::Queue => {
                    match self.acquire(at, running) {
                        Ok(stage) => stage,
                        Err(pause) => return Some(pause),
                    }
                }
                CallStage::MarkVmas => {
                    if self.mark_vmas(at, running) == LockResult::Queued {
                        return Some(Pause::Lock(Cause::VmaFaults));
                    }
                    CallStage::VmaChange
                }
                CallStage::VmaChange => {
                    self.change(at, running);
                    CallStage::Unlock
                }
                CallStage::Unlock => {
                    let next = self.drop_lock(at, running);
                    if next != Some(CallStage::Zap) {
                        self.record_time(running);
                    }
                    next?
                }
                CallStage::Zap => {
                    if let Some(locks) = &mut running.spaces[at.process].process.locks {
                        locks.release(Lock::Mmap, 0, running.world.now_ns());
                        running.world.wake(locks.take_woken());
                    }
                    self.record_time(running);
                    return None;
                }
                CallStage::Child(ends_ns) if running.world.now_ns() < ends_ns => {
                    return Some(Pause::Sleep(ends_ns));
                }
                CallStage::Child(_) => return None,
            };
        }
    }

    /// Records the duration of the call, not including a forked child.
    fn record_time<C: PageCache>(&self, running: &mut ProgramRun<'_, '_, C>) {
        let now_ns = running.world.now_ns();
        if let (Some(spent), Some(call)) = (&mut running.wait_times, self.step.call()) {
            spent.record_call(call, now_ns - self.began_ns);
        }
    }

    /// Starts spinning for `mmap_lock` if it is contended. Writers spin while the owner is on a
    /// CPU, and for a limited time if readers hold the lock.
    fn begin_spin<C: PageCache>(&self, at: StepId, running: &mut ProgramRun<'_, '_, C>) -> bool {
        let ProgramRun { world, spaces, .. } = running;
        let Some(locks) = &mut spaces[at.process].process.locks else { return false };
        let spins = match locks.holder() {
            Holder::Nobody => false,
            Holder::Writer(_) => world.owner_on_cpu,
            Holder::Readers(_) => true,
        };
        self.step.changes_mappings() && spins && locks.spin(at.thread)
    }

    /// Continues to spin, up to `until_ns` if that is known for a reader-owned lock.
    fn spin<C: PageCache>(
        &self,
        until_ns: Option<u64>,
        at: StepId,
        running: &mut ProgramRun<'_, '_, C>,
    ) -> CallStage {
        let ProgramRun { world, spaces, .. } = running;
        let locks = spaces[at.process].process.locks.as_mut().expect("it spins for one");
        let holder = locks.holder();
        if holder == Holder::Writer(at.thread) {
            return CallStage::MarkVmas;
        }
        let until_ns = holder.reader_spin_ns().map(|ns| until_ns.unwrap_or(world.now_ns() + ns));
        let is_long = until_ns.is_some_and(|until_ns| world.now_ns() >= until_ns);
        let sleeps = matches!(holder, Holder::Writer(_)) && !world.owner_on_cpu;
        if is_long || sleeps || !world.spin(until_ns.unwrap_or(u64::MAX)) {
            locks.end_spin(at.thread, is_long);
            return CallStage::Queue;
        }
        CallStage::Spin(until_ns)
    }

    /// The VMA whose lock suffices in place of `mmap_lock`.
    ///
    /// Stands for `try_vma_read_lock`, 6.18. Test: `tests/program_locks.rs`.
    fn single_vma<C: PageCache>(&self, at: StepId, running: &ProgramRun<'_, '_, C>) -> Option<u64> {
        let ProgramStep::Madvise { mapping, advice: Madvise::DontNeed, first, pages } = *self.step
        else {
            return None;
        };
        let [area] = running.spaces[at.process].mapped[mapping].as_ref()?.areas() else {
            return None;
        };
        let from = area.mapping.whole.pgoff + first;
        let mut vmas = area.mapping.vmas(from, from + pages);
        let (vma, ..) = vmas.next()?;
        let lock = lock::dontneed_lock(&running.job.rules);
        let is_one = lock == Lock::Vma && vmas.next().is_none();
        is_one.then_some(vma.start.0)
    }

    /// Tries to take the VMA lock that suffices. Returns whether it has it.
    fn acquire_vma<C: PageCache>(
        &mut self,
        at: StepId,
        running: &mut ProgramRun<'_, '_, C>,
    ) -> bool {
        let vma = self.single_vma(at, running).filter(|_| self.stage == CallStage::Acquire);
        let ProgramRun { world, spaces, .. } = running;
        let Some(vma) = vma else { return false };
        let Some(locks) = &mut spaces[at.process].process.locks else { return true };
        let has = locks.read(at.thread, Lock::Vma, vma, world.now_ns()) == LockResult::Acquired;
        if has {
            self.held = (Lock::Vma, vma)
        } else {
            world.tally.refused += 1
        }
        has
    }

    /// Requests the lock. Returns the next stage, or why the thread waits.
    fn acquire<C: PageCache>(
        &mut self,
        at: StepId,
        running: &mut ProgramRun<'_, '_, C>,
    ) -> Result<CallStage, Pause> {
        if self.acquire_vma(at, running) {
            return Ok(CallStage::VmaChange);
        }
        let ProgramRun { world, spaces, .. } = running;
        let writes = self.step.changes_mappings();
        let next = if writes { CallStage::MarkVmas } else { CallStage::VmaChange };
        let was_woken = self.stage == CallStage::Retry;
        let result = match &mut spaces[at.process].process.locks {
            None => LockResult::Acquired,
            Some(locks) => {
                let result = if writes {
                    locks.write(at.thread, was_woken, world.now_ns())
                } else {
                    locks.read(at.thread, Lock::Mmap, 0, world.now_ns())
                };
                world.wake(locks.take_woken());
                result
            }
        };
        if result == LockResult::Acquired {
            world.tally.shared += u64::from(!writes);
            return Ok(next);
        }
        world.tally.waits += u64::from(!was_woken);
        self.stage = CallStage::Retry;
        let lock = if writes { Cause::MmapWrite } else { Cause::MmapRead };
        Err(if was_woken { Pause::LockRetry(lock) } else { Pause::Lock(lock) })
    }

    /// Marks the VMAs that it changes, up to the first one that it has to wait for.
    ///
    /// Mirrors `dup_mmap` and `vma_start_write`, 6.12. Test: `tests/program_locks.rs`.
    fn mark_vmas<C: PageCache>(
        &mut self,
        at: StepId,
        running: &mut ProgramRun<'_, '_, C>,
    ) -> LockResult {
        let space = &mut running.spaces[at.process];
        if space.process.locks.is_none() {
            return LockResult::Acquired;
        }
        let vmas: Vec<u64> = match *self.step {
            ProgramStep::Fork => space.mapped.iter().flatten().flat_map(all_vmas).collect(),
            ProgramStep::Unmap { mapping, .. } if self.unmapped_part(space).is_none() => {
                space.mapped[mapping].iter().flat_map(all_vmas).collect()
            }
            _ => self.altered_vmas(space).iter().map(|vma| vma.start.0).collect(),
        };
        let locks = space.process.locks.as_mut().expect("it has some");
        for vma in vmas.into_iter().skip(self.marked) {
            self.marked += 1;
            if locks.start_write(at.thread, vma) == LockResult::Queued {
                return LockResult::Queued;
            }
        }
        LockResult::Acquired
    }

    /// The file pages that it unmaps, if that is part of a mapping.
    fn unmapped_part(&self, space: &ProcessSpace) -> Option<(PageIndex, PageIndex)> {
        let ProgramStep::Unmap { mapping, first, pages } = *self.step else { return None };
        let [area] = space.mapped[mapping].as_ref()?.areas() else { return None };
        let whole = area.mapping.whole;
        let from = whole.pgoff + first;
        (pages < whole.pages).then(|| (from, from + pages))
    }

    /// The VMAs that it changes.
    fn altered_vmas(&self, space: &ProcessSpace) -> Vec<Vma> {
        let (mapping, first, pages, change) = match *self.step {
            ProgramStep::Mprotect { mapping, protection, first, pages } => {
                (mapping, first, pages, VmaChange::Protection(protection))
            }
            ProgramStep::Madvise { mapping, advice, first, pages } => {
                let Madvise::Flag(flag) = advice else { return Vec::new() };
                (mapping, first, pages, VmaChange::Advice(flag))
            }
            ProgramStep::Unmap { mapping, first, pages } => (mapping, first, pages, UNMAPPED),
            _ => return Vec::new(),
        };
        let row = space.mapped[mapping].as_ref().expect("validated: it is mapped");
        let [area] = row.areas() else { unreachable!("validated: no call is about segments") };
        let from = area.mapping.whole.pgoff + first;
        area.mapping.altered(from, from + pages, change)
    }

    /// Changes the mappings and charges the time.
    fn change<C: PageCache>(&mut self, at: StepId, running: &mut ProgramRun<'_, '_, C>) {
        let cost = running.world.profile.cost;
        match *self.step {
            ProgramStep::Map { mapping } => {
                running.map(at.process, mapping);
                running.world.advance(cost.call_ns);
            }
            ProgramStep::Unmap { mapping, .. } => {
                if let Some(part) = self.unmapped_part(&running.spaces[at.process]) {
                    let (row, open, mut task) = running.mapping_task(at.process, mapping);
                    task.change(row.single_area(), part, UNMAPPED, open);
                }
                running.world.advance(cost.call_ns);
            }
            ProgramStep::Madvise { mapping, advice, first, pages } => {
                if advice == Madvise::DontNeed {
                    let (row, ..) = running.mapping_task(at.process, mapping);
                    let from = row.single_area().mapping.whole.pgoff + first;
                    let entries = count_entries(at.process, mapping, (from, from + pages), running);
                    self.busy_ns = cost.entry_ns.saturating_mul(entries);
                }
                running.madvise(at.process, mapping, advice, (first, pages));
            }
            ProgramStep::Mprotect { mapping, protection, first, pages } => {
                let vmas = self.altered_vmas(&running.spaces[at.process]);
                let (row, ..) = running.mapping_task(at.process, mapping);
                let area = row.single_area();
                let from = area.mapping.whole.pgoff + first;
                let parts =
                    vmas.iter().map(|vma| (vma.pgoff.max(from), vma.end().min(from + pages)));
                // VMAs that are merely merged lie outside.
                let parts = parts.filter(|(from, end)| from < end);
                let entries =
                    parts.map(|part| count_entries(at.process, mapping, part, running)).sum();
                let (row, open, mut task) = running.mapping_task(at.process, mapping);
                let change = VmaChange::Protection(protection);
                task.change(row.single_area(), (from, from + pages), change, open);
                running.world.advance(cost.call_ns);
                self.busy_ns = cost.protect_page_ns().saturating_mul(entries);
            }
            ProgramStep::Fork => {
                running.fork(at.process);
                running.world.advance(cost.fork_ns);
            }
            _ => unreachable!("no other step is a call"),
        }
        running.world.settle();
    }

    /// Releases or downgrades the lock. Returns the next stage, if any.
    fn drop_lock<C: PageCache>(
        &mut self,
        at: StepId,
        running: &mut ProgramRun<'_, '_, C>,
    ) -> Option<CallStage> {
        let (cost, writes) = (running.world.profile.cost, self.step.changes_mappings());
        let zaps = matches!(self.step, ProgramStep::Unmap { .. });
        let ProgramRun { world, spaces, .. } = &mut *running;
        if let Some(locks) = &mut spaces[at.process].process.locks {
            match (writes, zaps) {
                (_, true) => locks.downgrade(at.thread),
                (true, false) => locks.release_write(at.thread, world.now_ns()),
                (false, false) => locks.release(self.held.0, self.held.1, world.now_ns()),
            }
            world.wake(locks.take_woken());
        }
        match *self.step {
            ProgramStep::Unmap { mapping, .. } => {
                let part = self.unmapped_part(&running.spaces[at.process]);
                let (row, ..) = running.mapping_task(at.process, mapping);
                let whole = row.single_area().mapping.whole;
                let pages = part.unwrap_or((whole.pgoff, whole.end()));
                let entries = count_entries(at.process, mapping, pages, running);
                match part {
                    Some(part) => {
                        let (row, open, mut task) = running.mapping_task(at.process, mapping);
                        task.unmap_part(row.single_area(), part, open);
                    }
                    None => running.unmap(at.process, mapping),
                }
                self.busy_ns = cost.entry_ns.saturating_mul(entries);
                Some(CallStage::Zap)
            }
            ProgramStep::Fork => {
                Some(CallStage::Child(running.world.now_ns().saturating_add(cost.fork_ns)))
            }
            _ => None,
        }
    }
}

/// The numbers of all VMAs of a mapping.
fn all_vmas(row: &MappedAreas) -> Vec<u64> {
    let of_area = |area: &MappedArea| {
        let whole = area.mapping.whole;
        area.mapping.vmas(whole.pgoff, whole.end()).map(|(vma, ..)| vma.start.0).collect::<Vec<_>>()
    };
    row.areas().iter().flat_map(of_area).collect()
}

/// Number of page-table entries for the pages `from..end` of a mapping, including private copies.
fn count_entries<C: PageCache>(
    process: usize,
    mapping: usize,
    (from, end): (PageIndex, PageIndex),
    running: &mut ProgramRun<'_, '_, C>,
) -> u64 {
    let (row, open, task) = running.mapping_task(process, mapping);
    let file = task.world.memory.cache.mapped(open.file, row.single_area().layer);
    let words = file.words_with_entries(from, end);
    let mut masks = by_word(from, end).peekable();
    let mut entries = 0;
    for word in words {
        while masks.next_if(|(at, _)| *at < word).is_some() {}
        let mask = masks.peek().filter(|(at, _)| *at == word).map_or(0, |(_, mask)| *mask);
        let pages = file.pages(word, mask);
        entries += u64::from(((pages.mapped | pages.copied) & mask).count_ones());
    }
    entries
}
