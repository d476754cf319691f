//! A program under way: the world, its processes, what they have open and mapped.

use std::collections::BTreeSet;

use filemap_core::address::advice::{AdviceFlag, ReadHint};
use filemap_core::address::entries::MappedFile;
use filemap_core::cache::word_mask;
use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageCount, Vpn};
use filemap_job::format_size;
use filemap_job::program::{Fadvise, Job, Madvise, ProgramStep};

use super::order::{Barriers, Order};
use super::spent::Spent;
use crate::Error;
use crate::device::Device;
use crate::flushes::Flushes;
use crate::governor::{Governed, Governor};
use crate::journal::Journal;
use crate::memory::Memory;
use crate::mm::{Holder, Locks};
use crate::open::OpenFile;
use crate::process::{Process, Row};
use crate::profile::Profile;
use crate::setup;
use crate::task::Task;
use crate::tlb::Tlb;
use crate::under_way::FaultUnderWay;
use crate::waiting::Pause;
use crate::world::{DISK, HOLES, Timing, World};

/// A program under way.
pub(super) struct Running<'p, 'a, C, L> {
    pub(super) job: &'p Job,
    pub(super) world: World<'a, C, L>,
    pub(super) spaces: Vec<Space>,
    pub(super) opens: Vec<OpenFile>,
    /// What a governor knows of each file.
    governors: Vec<Governor>,
    /// Where each mapping begins when it is there.
    pub(super) starts: Vec<Vpn>,
    pub(super) order: Order<'p>,
    pub(super) barriers: Barriers,
    /// Where the time of several threads goes.
    pub(super) spent: Option<Spent>,
}

/// An error, and the step that it ended: the indexes of the thread and of the step in it.
#[derive(Debug)]
pub(super) struct Stopped {
    pub(super) error: Error,
    pub(super) thread: usize,
    pub(super) step: usize,
}

/// A process, and what it has mapped.
#[derive(Debug)]
pub(super) struct Space {
    pub(super) process: Process,
    /// Each mapping, while it is there.
    pub(super) mapped: Vec<Option<Row>>,
    /// The mappings that a governor follows.
    governed: Vec<Option<Governed>>,
}

impl<'p, 'a, C: PageCache, L: Log> Running<'p, 'a, C, L> {
    pub(super) fn new(
        job: &'p Job,
        profile: &'a Profile,
        (timing, flushes): (Timing, Flushes),
        cache: C,
        log: &'a mut L,
    ) -> Running<'p, 'a, C, L> {
        let (files, threads) = (job.files.len(), job.threads.len());
        let device = |sparse| Device::new(setup::device(sparse, profile), job.page_size());
        let mut memory = Memory::new(&job.machine, job.rules, files, cache, flushes);
        if threads > 1 {
            memory = memory.owing(&job.machine);
        }
        memory.hold(job.anonymous);
        let devices = vec![device(false), device(true)];
        let opens = job.opens.iter().enumerate().map(|(number, open)| {
            let file = &job.files[open.file].file;
            let pages = job.file_pages(open.file);
            let device = if file.sparse { HOLES } else { DISK };
            let limits = setup::limits(job.rules, &job.machine, pages, profile);
            let of_file = FileId::new(open.file as u32);
            let open = OpenFile::new(of_file, file.size_bytes, device, limits);
            OpenFile { number: number as u32, ..open }
        });
        let limit = job.machine.cache_limit;
        let governor = Governor::new(profile, job.page_size(), limit);
        let mut running = Running {
            job,
            opens: opens.collect(),
            world: World::new(profile, timing, memory, devices, Journal::new(log)),
            spaces: (0..job.processes.len())
                .map(|process| Space::new(process, job, profile))
                .collect(),
            governors: vec![governor; files],
            starts: starts(job),
            order: Order::new(&job.threads),
            barriers: Barriers::new(job),
            spent: (threads > 1).then(|| Spent::new(threads)),
        };
        for (process, number) in mapped_at_start(job) {
            running.map(process, number);
        }
        running
    }

    /// A thread of `process` goes on: page tables of the others are still paid for.
    pub(super) fn enter(&mut self, process: usize) {
        if self.spaces.len() > 1 {
            let others = self.spaces.iter().enumerate().filter(|(number, _)| *number != process);
            let pages = others.map(|(_, space)| space.process.tables.pages().0).sum();
            self.world.memory.other_tables = PageCount(pages);
        }
    }

    /// The task that has `mmap_lock` of a process to write.
    pub(super) fn holder(&self, process: usize) -> Option<usize> {
        match self.spaces[process].process.locks.as_ref()?.holder() {
            Holder::Writer(task) => Some(task),
            _ => None,
        }
    }

    pub(super) fn map(&mut self, process: usize, number: usize) {
        let of = &self.job.mappings[number];
        let mut mappings = setup::mappings(of, self.starts[number], &self.job.rules);
        for mapping in &mut mappings {
            mapping.no_reuse = self.opens[of.open].no_reuse;
            mapping.process = process as u32;
        }
        let page_size = self.job.page_size();
        let is_governed = self.job.machine.governor && of.ungoverned(page_size).is_none();
        let space = &mut self.spaces[process];
        space.governed[number] = is_governed.then(|| Governed::advise(&mut mappings[0]));
        let file = self.opens[of.open].file;
        let row = Row::map(&mappings, self.world.memory.mappings.of_mut(file));
        space.mapped[number] = Some(row);
    }

    /// Mapping `number` of a process, its open file, and a task to work on them.
    // Once an access.
    #[inline(always)]
    pub(super) fn through(
        &mut self,
        process: usize,
        number: usize,
    ) -> (&mut Row, &mut OpenFile, Task<'_, 'a, C, L>) {
        self.world.log.mapping(Some(number));
        let Space { process, mapped, .. } = &mut self.spaces[process];
        let row = mapped[number].as_mut().expect("validated: it is mapped");
        let open = &mut self.opens[self.job.mappings[number].open];
        (row, open, Task { world: &mut self.world, process })
    }

    /// Open file `number`, and a task of a process to work on it.
    pub(super) fn on_open(
        &mut self,
        process: usize,
        number: usize,
    ) -> (&mut OpenFile, Task<'_, 'a, C, L>) {
        self.world.log.mapping(None);
        let process = &mut self.spaces[process].process;
        (&mut self.opens[number], Task { world: &mut self.world, process })
    }

    /// A task of a process goes back to user mode: it repays what it owes, holding nothing.
    pub(super) fn repay(&mut self, process: usize) -> Option<Pause> {
        if self.world.owes() {
            self.world.repay(&self.spaces[process].process.tables)
        } else {
            None
        }
    }

    /// Serves a fault on a page of mapping `number`, whose VMA advice may have cut anew while
    /// the thread waited.
    ///
    /// # Errors
    /// As for [`FaultUnderWay::serve`].
    pub(super) fn serve_fault(
        &mut self,
        process: usize,
        number: usize,
        fault: &mut FaultUnderWay,
    ) -> Result<Option<Pause>, Error> {
        let (row, open, mut task) = self.through(process, number);
        fault.find_vma(row);
        let pause = fault.serve(&mut task, open)?;
        if pause.is_some() {
            return Ok(pause);
        }
        let Running { job, world, spaces, opens, governors, .. } = self;
        let Space { process, mapped, governed } = &mut spaces[process];
        if let (Some(seen), Some(governed), Some(row)) =
            (fault.seen(), &mut governed[number], &mut mapped[number])
        {
            let open = &mut opens[job.mappings[number].open];
            let governor = &mut governors[job.opens[open.number as usize].file];
            governor.fault(seen, governed, row.only(), open, &mut Task { world, process });
        }
        Ok(None)
    }

    /// A process forks a child that ends at once: entries of private copies let no write through
    /// until the next one finds that nobody else has them.
    pub(super) fn forks(&mut self, process: usize) {
        let Running { job, world, spaces, opens, .. } = self;
        for (number, row) in spaces[process].mapped.iter_mut().enumerate() {
            let Some(row) = row.as_mut().filter(|_| job.mappings[number].mapping.private) else {
                continue;
            };
            let area = row.only();
            let whole = area.mapping.whole;
            let file = opens[job.mappings[number].open].file;
            let file = world.memory.cache.mapped(file, area.layer);
            for word in file.words_with_entries(whole.pgoff, whole.end()) {
                let mask = word_mask(word, whole.pgoff, whole.end());
                area.forked.add(word, file.pages(word, mask).copied & mask);
            }
        }
    }

    pub(super) fn unmap(&mut self, process: usize, number: usize) {
        let Space { process, mapped, governed } = &mut self.spaces[process];
        let mut row = mapped[number].take().expect("validated: it is mapped");
        governed[number] = None;
        let open = &self.opens[self.job.mappings[number].open];
        Task { world: &mut self.world, process }.unmap(row.only(), open);
    }

    pub(super) fn madvise(
        &mut self,
        process: usize,
        number: usize,
        advice: Madvise,
        part: (PageCount, PageCount),
    ) {
        let stays_governed = matches!(
            advice,
            Madvise::WillNeed | Madvise::DontNeed | Madvise::Cold | Madvise::PageOut
        );
        let governed = &mut self.spaces[process].governed[number];
        let yields = !stays_governed && governed.take().is_some();
        let (row, open, mut task) = self.through(process, number);
        let area = row.only();
        if yields {
            // The program's word stands, from before the governor's.
            let (normal, whole) = (AdviceFlag::Read(ReadHint::Normal), area.mapping.whole.pages);
            task.madvise(area, Madvise::Flag(normal), (PageCount(0), whole), open);
        }
        task.madvise(area, advice, part, open);
    }

    pub(super) fn fadvise(
        &mut self,
        process: usize,
        number: usize,
        advice: Fadvise,
        (offset, len): (u64, Option<u64>),
    ) {
        let (open, mut task) = self.on_open(process, number);
        task.fadvise(advice, offset, len, open);
        let Running { job, world, spaces, opens, .. } = self;
        for Space { process, mapped, .. } in spaces {
            let rows = job.mappings.iter().zip(mapped);
            let of_open = rows.filter(|(of, _)| of.open == number);
            let rows = of_open.filter_map(|(_, row)| row.as_mut());
            for area in rows.flat_map(Row::areas_mut) {
                Task { world, process }.reuse(area, &opens[number]);
            }
        }
    }

    /// Why the program stopped, in its own words: those of its job file, where it has one.
    pub(super) fn told(&self, Stopped { error, thread, step }: Stopped) -> Error {
        let machine = &self.job.machine;
        let has_file = self.job.of_flags.is_none();
        let limit = machine.cache_limit.zip(machine.limit_key()).filter(|_| has_file);
        match (error, limit) {
            (Error::OutOfMemory { index }, Some((limit, key))) => {
                let file = self.job.file_of(&self.job.threads[thread].steps[step]);
                let file = file.expect("who takes memory is at a file");
                Error::ProgramOutOfMemory {
                    step: self.job.step_name(thread, step),
                    index,
                    file: self.job.files[file].name.clone(),
                    limit: format_size(limit.bytes(self.job.page_size())),
                    key,
                }
            }
            (error, _) => error,
        }
    }

    pub(super) fn bus(&self, step: String, mapping: usize, page: u64) -> Error {
        let of = &self.job.mappings[mapping];
        let file = &self.job.files[self.job.opens[of.open].file];
        Error::Bus { step, page, mapping: of.name.clone(), file: file.name.clone() }
    }
}

impl Space {
    fn new(process: usize, job: &Job, profile: &Profile) -> Space {
        let tlb = Tlb::new(profile.itlb, job.page_size());
        let locks = job.waits_for_locks(process).then(Locks::default);
        Space {
            process: Process { locks, ..Process::new(tlb) },
            mapped: vec![None; job.mappings.len()],
            governed: vec![None; job.mappings.len()],
        }
    }
}

/// Each process with each mapping that it has from the start and that its threads use.
fn mapped_at_start(job: &Job) -> Vec<(usize, usize)> {
    let used = job.threads.iter().flat_map(|thread| {
        let mappings = thread.steps.iter().filter_map(ProgramStep::mapping);
        mappings.map(|mapping| (thread.process, mapping))
    });
    let mut used: BTreeSet<(usize, usize)> = used.collect();
    // What no thread uses is mapped where the program begins.
    used.extend((0..job.mappings.len()).map(|mapping| (0, mapping)));
    used.into_iter().filter(|(_, mapping)| job.mappings[*mapping].at_start).collect()
}

/// Where the mappings begin: one after the other, each in page-table pages of its own.
fn starts(job: &Job) -> Vec<Vpn> {
    let entries = job.machine.arch.pte_entries;
    let mut next = 0;
    let starts = job.mappings.iter().map(|of| {
        let start = next + of.mapping.shift.0;
        next = (start + of.span().0).next_multiple_of(entries);
        Vpn(start)
    });
    starts.collect()
}
