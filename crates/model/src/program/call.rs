//! Calls that take `mmap_lock`: what is mapped changes under it.

use filemap_core::address::entries::MappedFile;
use filemap_core::address::mapping::Change;
use filemap_core::address::protection::Protection;
use filemap_core::address::vma::Vma;
use filemap_core::cache::by_word;
use filemap_core::decision::{Lock, Log};
use filemap_core::fault::lock;
use filemap_core::page_cache::PageCache;
use filemap_core::units::PageIndex;
use filemap_job::program::{Madvise, ProgramStep};
use filemap_job::waits::Cause;

use super::done::At;
use super::running::{Running, Space};
use crate::mm::{Holder, Taken};
use crate::process::{Area, Row};
use crate::waiting::Pause;

/// What `munmap(2)` of a part changes.
const UNMAPPED: Change = Change::Protection(Protection::Unmapped);

/// A call under way.
#[derive(Debug)]
pub(super) struct Call<'p> {
    step: &'p ProgramStep,
    began_ns: u64,
    stage: Stage,
    /// What it has to read: `mmap_lock`, or the lock of a VMA.
    held: (Lock, u64),
    /// How many VMAs it has marked.
    marked: usize,
    /// How long it is busy with entries before it comes to that, in nanoseconds. The kernel lets
    /// others run meanwhile.
    busy_ns: u64,
}

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It asks for `mmap_lock`.
    Asks,
    /// It spins for the lock, for readers that have it up to this time.
    Spins(Option<u64>),
    /// It has spun in vain.
    Queues,
    /// It was woken to ask again, or with the lock.
    Again,
    /// It has the lock to write, and marks VMAs.
    Has,
    /// It changes what is mapped.
    Changes,
    /// It drops the lock, or goes on as a reader.
    Drops,
    /// It takes entries away as a reader.
    Zaps,
    /// The child that was forked ends.
    Child(u64),
}

impl<'p> Call<'p> {
    pub(super) fn new(step: &'p ProgramStep, began_ns: u64) -> Call<'p> {
        Call { step, began_ns, stage: Stage::Asks, held: (Lock::Mmap, 0), marked: 0, busy_ns: 0 }
    }

    /// Goes on until it is done, or the thread has to pause.
    pub(super) fn call_on<C: PageCache, L: Log>(
        &mut self,
        at: At,
        running: &mut Running<'_, '_, C, L>,
    ) -> Option<Pause> {
        loop {
            if self.busy_ns > 0 {
                self.busy_ns = running.world.think(self.busy_ns);
                if self.busy_ns > 0 {
                    return Some(Pause::Turn);
                }
                if running.world.profile.cpus_in_turn {
                    return Some(Pause::Answers);
                }
            }
            let is_first = matches!(self.stage, Stage::Asks | Stage::Spins(_));
            if !is_first && running.world.turn_is_over() {
                return Some(Pause::InKernel);
            }
            self.stage = match self.stage {
                Stage::Asks if self.begins_to_spin(at, running) => Stage::Spins(None),
                Stage::Spins(until_ns) => match self.spin(until_ns, at, running) {
                    Stage::Spins(until_ns) => {
                        self.stage = Stage::Spins(until_ns);
                        return Some(Pause::Spins);
                    }
                    stage => stage,
                },
                Stage::Asks | Stage::Again | Stage::Queues => match self.ask(at, running) {
                    Ok(stage) => stage,
                    Err(pause) => return Some(pause),
                },
                Stage::Has => {
                    if self.mark(at, running) == Taken::Waits {
                        return Some(Pause::Lock(Cause::VmaFaults));
                    }
                    Stage::Changes
                }
                Stage::Changes => {
                    self.change(at, running);
                    Stage::Drops
                }
                Stage::Drops => {
                    let next = self.drop_lock(at, running);
                    if next != Some(Stage::Zaps) {
                        self.returns(running);
                    }
                    next?
                }
                Stage::Zaps => {
                    if let Some(locks) = &mut running.spaces[at.process].process.locks {
                        locks.release(Lock::Mmap, 0, running.world.now_ns());
                        running.world.wake(locks.take_woken());
                    }
                    self.returns(running);
                    return None;
                }
                Stage::Child(ends_ns) if running.world.now_ns() < ends_ns => {
                    return Some(Pause::Sleep(ends_ns));
                }
                Stage::Child(_) => return None,
            };
        }
    }

    /// It is done; a child that it has forked may not be.
    fn returns<C: PageCache, L: Log>(&self, running: &mut Running<'_, '_, C, L>) {
        let now_ns = running.world.now_ns();
        if let (Some(spent), Some(call)) = (&mut running.spent, self.step.call()) {
            spent.called(call, now_ns - self.began_ns);
        }
    }

    /// Whether it spins for `mmap_lock`, which it does not get at once: a writer does so while the
    /// writer that has it runs, and for a while where readers have it.
    fn begins_to_spin<C: PageCache, L: Log>(
        &self,
        at: At,
        running: &mut Running<'_, '_, C, L>,
    ) -> bool {
        let Running { world, spaces, .. } = running;
        let Some(locks) = &mut spaces[at.process].process.locks else { return false };
        let spins = match locks.holder() {
            Holder::Nobody => false,
            Holder::Writer(_) => world.holder_runs,
            Holder::Readers(_) => true,
        };
        self.step.changes_mappings() && spins && locks.spin(at.thread)
    }

    /// Spins on, up to `until_ns` where it knows how long it does so for readers.
    fn spin<C: PageCache, L: Log>(
        &self,
        until_ns: Option<u64>,
        at: At,
        running: &mut Running<'_, '_, C, L>,
    ) -> Stage {
        let Running { world, spaces, .. } = running;
        let locks = spaces[at.process].process.locks.as_mut().expect("it spins for one");
        let holder = locks.holder();
        if holder == Holder::Writer(at.thread) {
            return Stage::Has;
        }
        let until_ns = holder.spun_ns().map(|ns| until_ns.unwrap_or(world.now_ns() + ns));
        let is_long = until_ns.is_some_and(|until_ns| world.now_ns() >= until_ns);
        let sleeps = matches!(holder, Holder::Writer(_)) && !world.holder_runs;
        if is_long || sleeps || !world.spin(until_ns.unwrap_or(u64::MAX)) {
            locks.end_spin(at.thread, is_long);
            return Stage::Queues;
        }
        Stage::Spins(until_ns)
    }

    /// The VMA whose lock it takes in place of `mmap_lock`, where it may.
    ///
    /// Stands for `try_vma_read_lock`, 6.18. Test: `tests/program_locks.rs`.
    fn one_vma<C: PageCache, L: Log>(
        &self,
        at: At,
        running: &Running<'_, '_, C, L>,
    ) -> Option<u64> {
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
        let lock = lock::of_dontneed(&running.job.rules);
        let is_one = lock == Lock::Vma && vmas.next().is_none();
        is_one.then_some(vma.start.0)
    }

    /// Asks for the lock of the VMA that is enough for it. Whether it has that.
    fn ask_vma<C: PageCache, L: Log>(
        &mut self,
        at: At,
        running: &mut Running<'_, '_, C, L>,
    ) -> bool {
        let vma = self.one_vma(at, running).filter(|_| self.stage == Stage::Asks);
        let Running { world, spaces, .. } = running;
        let Some(vma) = vma else { return false };
        let Some(locks) = &mut spaces[at.process].process.locks else { return true };
        let has = locks.read(at.thread, Lock::Vma, vma, world.now_ns()) == Taken::Has;
        if has {
            self.held = (Lock::Vma, vma)
        } else {
            world.tally.refused += 1
        }
        has
    }

    /// Asks for its lock: what comes next, or that it has to be waited for.
    fn ask<C: PageCache, L: Log>(
        &mut self,
        at: At,
        running: &mut Running<'_, '_, C, L>,
    ) -> Result<Stage, Pause> {
        if self.ask_vma(at, running) {
            return Ok(Stage::Changes);
        }
        let Running { world, spaces, .. } = running;
        let writes = self.step.changes_mappings();
        let next = if writes { Stage::Has } else { Stage::Changes };
        let was_woken = self.stage == Stage::Again;
        let taken = match &mut spaces[at.process].process.locks {
            None => Taken::Has,
            Some(locks) => {
                let taken = if writes {
                    locks.write(at.thread, was_woken, world.now_ns())
                } else {
                    locks.read(at.thread, Lock::Mmap, 0, world.now_ns())
                };
                world.wake(locks.take_woken());
                taken
            }
        };
        if taken == Taken::Has {
            world.tally.shared += u64::from(!writes);
            return Ok(next);
        }
        world.tally.waits += u64::from(!was_woken);
        self.stage = Stage::Again;
        let lock = if writes { Cause::MmapWrite } else { Cause::MmapRead };
        Err(if was_woken { Pause::StillLock(lock) } else { Pause::Lock(lock) })
    }

    /// Marks the VMAs that it changes, one after the other, up to one that it has to wait for.
    ///
    /// Mirrors `dup_mmap` and `vma_start_write`, 6.12. Test: `tests/program_locks.rs`.
    fn mark<C: PageCache, L: Log>(&mut self, at: At, running: &mut Running<'_, '_, C, L>) -> Taken {
        let space = &mut running.spaces[at.process];
        if space.process.locks.is_none() {
            return Taken::Has;
        }
        let vmas: Vec<u64> = match *self.step {
            ProgramStep::Fork => space.mapped.iter().flatten().flat_map(all_vmas).collect(),
            ProgramStep::Unmap { mapping, .. } if self.part(space).is_none() => {
                space.mapped[mapping].iter().flat_map(all_vmas).collect()
            }
            _ => self.altered(space).iter().map(|vma| vma.start.0).collect(),
        };
        let locks = space.process.locks.as_mut().expect("it has some");
        for vma in vmas.into_iter().skip(self.marked) {
            self.marked += 1;
            if locks.mark(at.thread, vma) == Taken::Waits {
                return Taken::Waits;
            }
        }
        Taken::Has
    }

    /// The pages of the file that it unmaps, where these are a part of a mapping.
    fn part(&self, space: &Space) -> Option<(PageIndex, PageIndex)> {
        let ProgramStep::Unmap { mapping, first, pages } = *self.step else { return None };
        let [area] = space.mapped[mapping].as_ref()?.areas() else { return None };
        let whole = area.mapping.whole;
        let from = whole.pgoff + first;
        (pages < whole.pages).then(|| (from, from + pages))
    }

    /// The VMAs that it changes, where it changes any.
    fn altered(&self, space: &Space) -> Vec<Vma> {
        let (mapping, first, pages, change) = match *self.step {
            ProgramStep::Mprotect { mapping, protection, first, pages } => {
                (mapping, first, pages, Change::Protection(protection))
            }
            ProgramStep::Madvise { mapping, advice, first, pages } => {
                let Madvise::Flag(flag) = advice else { return Vec::new() };
                (mapping, first, pages, Change::Advice(flag))
            }
            ProgramStep::Unmap { mapping, first, pages } => (mapping, first, pages, UNMAPPED),
            _ => return Vec::new(),
        };
        let row = space.mapped[mapping].as_ref().expect("validated: it is mapped");
        let [area] = row.areas() else { unreachable!("validated: no call is about segments") };
        let from = area.mapping.whole.pgoff + first;
        area.mapping.altered(from, from + pages, change)
    }

    /// Changes what is mapped, which takes its time.
    fn change<C: PageCache, L: Log>(&mut self, at: At, running: &mut Running<'_, '_, C, L>) {
        let cost = running.world.profile.cost;
        match *self.step {
            ProgramStep::Map { mapping } => {
                running.map(at.process, mapping);
                running.world.pass(cost.call_ns);
            }
            ProgramStep::Unmap { mapping, .. } => {
                if let Some(part) = self.part(&running.spaces[at.process]) {
                    let (row, open, mut task) = running.through(at.process, mapping);
                    task.change(row.only(), part, UNMAPPED, open);
                }
                running.world.pass(cost.call_ns);
            }
            ProgramStep::Madvise { mapping, advice, first, pages } => {
                if advice == Madvise::DontNeed {
                    let (row, ..) = running.through(at.process, mapping);
                    let from = row.only().mapping.whole.pgoff + first;
                    let entries = entries(at.process, mapping, (from, from + pages), running);
                    self.busy_ns = cost.entry_ns.saturating_mul(entries);
                }
                running.madvise(at.process, mapping, advice, (first, pages));
            }
            ProgramStep::Mprotect { mapping, protection, first, pages } => {
                let vmas = self.altered(&running.spaces[at.process]);
                let (row, ..) = running.through(at.process, mapping);
                let area = row.only();
                let from = area.mapping.whole.pgoff + first;
                let parts =
                    vmas.iter().map(|vma| (vma.pgoff.max(from), vma.end().min(from + pages)));
                // What is only joined lies outside.
                let parts = parts.filter(|(from, end)| from < end);
                let entries = parts.map(|part| entries(at.process, mapping, part, running)).sum();
                let (row, open, mut task) = running.through(at.process, mapping);
                let change = Change::Protection(protection);
                task.change(row.only(), (from, from + pages), change, open);
                running.world.pass(cost.call_ns);
                self.busy_ns = cost.protect_page_ns().saturating_mul(entries);
            }
            ProgramStep::Fork => {
                running.forks(at.process);
                running.world.pass(cost.fork_ns);
            }
            _ => unreachable!("no other step is a call"),
        }
        running.world.settle();
    }

    /// Drops the lock, as far as the call is done with it. What comes next, if anything does.
    fn drop_lock<C: PageCache, L: Log>(
        &mut self,
        at: At,
        running: &mut Running<'_, '_, C, L>,
    ) -> Option<Stage> {
        let (cost, writes) = (running.world.profile.cost, self.step.changes_mappings());
        let zaps = matches!(self.step, ProgramStep::Unmap { .. });
        let Running { world, spaces, .. } = &mut *running;
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
                let part = self.part(&running.spaces[at.process]);
                let (row, ..) = running.through(at.process, mapping);
                let whole = row.only().mapping.whole;
                let pages = part.unwrap_or((whole.pgoff, whole.end()));
                let entries = entries(at.process, mapping, pages, running);
                match part {
                    Some(part) => {
                        let (row, open, mut task) = running.through(at.process, mapping);
                        task.unmap_part(row.only(), part, open);
                    }
                    None => running.unmap(at.process, mapping),
                }
                self.busy_ns = cost.entry_ns.saturating_mul(entries);
                Some(Stage::Zaps)
            }
            ProgramStep::Fork => {
                Some(Stage::Child(running.world.now_ns().saturating_add(cost.fork_ns)))
            }
            _ => None,
        }
    }
}

/// All VMAs of a mapping, by their numbers.
fn all_vmas(row: &Row) -> Vec<u64> {
    let of_area = |area: &Area| {
        let whole = area.mapping.whole;
        area.mapping.vmas(whole.pgoff, whole.end()).map(|(vma, ..)| vma.start.0).collect::<Vec<_>>()
    };
    row.areas().iter().flat_map(of_area).collect()
}

/// Entries that map the pages `from..end` of a mapping, or private copies of them.
fn entries<C: PageCache, L: Log>(
    process: usize,
    mapping: usize,
    (from, end): (PageIndex, PageIndex),
    running: &mut Running<'_, '_, C, L>,
) -> u64 {
    let (row, open, task) = running.through(process, mapping);
    let file = task.world.memory.cache.mapped(open.file, row.only().layer);
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
