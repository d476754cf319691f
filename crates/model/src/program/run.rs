//! The state of a running program: the world, its processes, and their open files and mappings.

use std::collections::BTreeSet;

use filemap_core::address::advice::{AdviceFlag, ReadHint};
use filemap_core::address::entries::MappedFile;
use filemap_core::cache::word_mask;
use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageCount, Vpn};
use filemap_job::format_size;
use filemap_job::program::{Fadvise, Job, Madvise, ProgramStep};

use super::order::{Barriers, StepOrder};
use super::record::{AccessLatencies, WaitTimes};
use super::{record, start};
use crate::Error;
use crate::device::Device;
use crate::governor::{FileGovernor, GovernedMapping};
use crate::log::RunLog;
use crate::memory::Flushes;
use crate::memory::Memory;
use crate::mm::{Holder, Locks};
use crate::open;
use crate::open::OpenFile;
use crate::pending::PendingFault;
use crate::process::{MappedAreas, Process};
use crate::profile::Profile;
use crate::task::Task;
use crate::tlb::Tlb;
use crate::wait_queue::Pause;
use crate::world::{Timing, World};

/// A running program.
pub(super) struct ProgramRun<'p, 'a, C> {
    pub(super) job: &'p Job,
    pub(super) world: World<'a, C>,
    pub(super) spaces: Vec<ProcessSpace>,
    pub(super) opens: Vec<OpenFile>,
    /// Governor state per file.
    governors: Vec<FileGovernor>,
    /// Start address of each mapping.
    pub(super) starts: Vec<Vpn>,
    pub(super) order: StepOrder<'p>,
    pub(super) barriers: Barriers,
    /// Latencies of faults and reads.
    pub(super) latencies: AccessLatencies,
    /// Cached pages of each file at the beginning.
    pub(super) start_pages: Vec<u64>,
    /// Wait statistics, if there are several threads.
    pub(super) wait_times: Option<WaitTimes>,
}

/// An error and the step in which it occurred: indexes of the thread and of the step.
#[derive(Debug)]
pub(super) struct StepError {
    pub(super) error: Error,
    pub(super) thread: usize,
    pub(super) step: usize,
}

/// A process and its mappings.
#[derive(Debug)]
pub(super) struct ProcessSpace {
    pub(super) process: Process,
    /// Each mapping of the job, while mapped.
    pub(super) mapped: Vec<Option<MappedAreas>>,
    /// Governed mappings.
    governed: Vec<Option<GovernedMapping>>,
}

impl<'p, 'a, C: PageCache> ProgramRun<'p, 'a, C> {
    /// `job` before its first step.
    ///
    /// # Errors
    /// If memory is too small for a page that is cached at the beginning.
    pub(super) fn new(
        job: &'p Job,
        profile: &'a Profile,
        (timing, flushes): (Timing, Flushes),
        cache: C,
        log: &'a mut dyn Log,
    ) -> Result<ProgramRun<'p, 'a, C>, Error> {
        let (files, threads) = (job.files.len(), job.threads.len());
        let device = |sparse| Device::new(open::device(sparse, profile), job.page_size());
        let mut memory = Memory::new(&job.machine, job.rules, files, cache, flushes);
        if threads > 1 {
            memory = memory.with_memory_high(&job.machine);
        }
        memory.charge_anonymous(job.anonymous);
        let mut memory = start::read_cached(job, profile, memory)?;
        let start_pages = record::start_pages(job, &mut memory.cache);
        let devices = vec![device(false), device(true)];
        let opens = job.opens.iter().enumerate().map(|(number, open)| {
            let file = &job.files[open.file].file;
            let pages = job.file_pages(open.file);
            let limits = open::limits(job.rules, &job.machine, pages, profile);
            let of_file = FileId::new(open.file as u32);
            let open = OpenFile::new(of_file, file, limits);
            OpenFile { number: number as u32, ..open }
        });
        let limit = job.machine.cache_limit;
        let governor = FileGovernor::new(profile, job.page_size(), limit);
        let mut running = ProgramRun {
            job,
            opens: opens.collect(),
            world: World::new(profile, timing, memory, devices, RunLog::new(log)),
            spaces: (0..job.processes.len())
                .map(|process| ProcessSpace::new(process, job, profile))
                .collect(),
            governors: vec![governor; files],
            starts: starts(job),
            order: StepOrder::new(&job.threads),
            barriers: Barriers::new(job),
            latencies: AccessLatencies::default(),
            start_pages,
            wait_times: (threads > 1).then(|| WaitTimes::new(threads)),
        };
        running.spaces[0].process.held = job.anonymous;
        for (process, number) in mapped_at_start(job) {
            running.map(process, number);
        }
        Ok(running)
    }

    /// Switches to a thread of `process`. Page tables of other processes stay charged.
    pub(super) fn switch_process(&mut self, process: usize) {
        if self.spaces.len() > 1 {
            let others = self.spaces.iter().enumerate().filter(|(number, _)| *number != process);
            let pages = others.map(|(_, space)| space.process.tables.pages().0).sum();
            self.world.memory.other_tables = PageCount(pages);
        }
    }

    /// The writer of a process's `mmap_lock`.
    pub(super) fn mmap_lock_writer(&self, process: usize) -> Option<usize> {
        match self.spaces[process].process.locks.as_ref()?.holder() {
            Holder::Writer(task) => Some(task),
            _ => None,
        }
    }

    pub(super) fn map(&mut self, process: usize, number: usize) {
        let named = &self.job.mappings[number];
        let mut mappings = open::mappings(named, self.starts[number], &self.job.rules);
        for mapping in &mut mappings {
            mapping.no_reuse = self.opens[named.open].no_reuse;
            mapping.process = process as u32;
        }
        let page_size = self.job.page_size();
        let is_governed = self.job.machine.governor && named.ungoverned(page_size).is_none();
        let space = &mut self.spaces[process];
        space.governed[number] = is_governed
            .then(|| GovernedMapping::begin(&mut mappings[0], named.mapping.advice.read));
        let file = self.opens[named.open].file;
        let row = MappedAreas::map(&mappings, self.world.memory.mappings.file_mut(file));
        space.mapped[number] = Some(row);
    }

    /// Mapping `number` of a process, its open file, and a task to operate on them.
    // Called once per access.
    #[inline(always)]
    pub(super) fn mapping_task(
        &mut self,
        process: usize,
        number: usize,
    ) -> (&mut MappedAreas, &mut OpenFile, Task<'_, 'a, C>) {
        self.world.log.mapping(Some(number));
        let ProcessSpace { process, mapped, .. } = &mut self.spaces[process];
        let row = mapped[number].as_mut().expect("validated: it is mapped");
        let open = &mut self.opens[self.job.mappings[number].open];
        (row, open, Task { world: &mut self.world, process })
    }

    /// Open file `number`, and a task of a process to operate on it.
    pub(super) fn open_task(
        &mut self,
        process: usize,
        number: usize,
    ) -> (&mut OpenFile, Task<'_, 'a, C>) {
        self.world.log.mapping(None);
        let process = &mut self.spaces[process].process;
        (&mut self.opens[number], Task { world: &mut self.world, process })
    }

    /// A task returns to user mode holding no locks, and repays what it charged above
    /// `memory.high`.
    pub(super) fn repay(&mut self, process: usize) -> Option<Pause> {
        if self.world.has_debt() {
            self.world.repay(&self.spaces[process].process.tables)
        } else {
            None
        }
    }

    /// Serves a fault on a page of mapping `number`. Its VMA is looked up again, as it may have
    /// been split while the thread waited.
    ///
    /// # Errors
    /// As for [`PendingFault::run`].
    pub(super) fn serve_fault(
        &mut self,
        process: usize,
        number: usize,
        fault: &mut PendingFault,
    ) -> Result<Option<Pause>, Error> {
        let (row, open, mut task) = self.mapping_task(process, number);
        fault.refresh_vma(row);
        let pause = fault.run(&mut task, open)?;
        if pause.is_some() {
            return Ok(pause);
        }
        let ProgramRun { job, world, spaces, opens, governors, .. } = self;
        let ProcessSpace { process, mapped, governed } = &mut spaces[process];
        if let (Some(seen), Some(governed), Some(row)) =
            (fault.observed_touch(), &mut governed[number], &mut mapped[number])
        {
            let open = &mut opens[job.mappings[number].open];
            let governor = &mut governors[job.opens[open.number as usize].file];
            governor.on_fault(
                seen,
                governed,
                row.single_area(),
                open,
                &mut Task { world, process },
            );
        }
        Ok(None)
    }

    /// Forks a child that exits immediately. Entries of private copies become write-protected until
    /// the next write finds that nobody shares the page.
    pub(super) fn fork(&mut self, process: usize) {
        let ProgramRun { job, world, spaces, opens, .. } = self;
        for (number, row) in spaces[process].mapped.iter_mut().enumerate() {
            let Some(row) = row.as_mut().filter(|_| job.mappings[number].mapping.private) else {
                continue;
            };
            let area = row.single_area();
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
        let ProcessSpace { process, mapped, governed } = &mut self.spaces[process];
        let mut row = mapped[number].take().expect("validated: it is mapped");
        governed[number] = None;
        let open = &self.opens[self.job.mappings[number].open];
        Task { world: &mut self.world, process }.unmap(row.single_area(), open);
    }

    pub(super) fn madvise(
        &mut self,
        process: usize,
        number: usize,
        advice: Madvise,
        part: (PageCount, PageCount),
    ) {
        let is_whole = part == (PageCount(0), self.job.mappings[number].mapping.pages);
        let governed = &mut self.spaces[process].governed[number];
        let yields = governed.as_mut().is_some_and(|own| !own.stays_governed(advice, is_whole));
        if yields {
            *governed = None;
        }
        let (row, open, mut task) = self.mapping_task(process, number);
        let area = row.single_area();
        if yields {
            // The program's own advice prevails; the governor's is undone first.
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
        let (open, mut task) = self.open_task(process, number);
        task.fadvise(advice, offset, len, open);
        let ProgramRun { job, world, spaces, opens, .. } = self;
        for ProcessSpace { process, mapped, .. } in spaces {
            let rows = job.mappings.iter().zip(mapped);
            let of_open = rows.filter(|(named, _)| named.open == number);
            let rows = of_open.filter_map(|(_, row)| row.as_mut());
            for area in rows.flat_map(MappedAreas::areas_mut) {
                Task { world, process }.inherit_no_reuse(area, &opens[number]);
            }
        }
    }

    /// Words an error in terms of the job file, if the job has one.
    pub(super) fn describe_error(&self, StepError { error, thread, step }: StepError) -> Error {
        let machine = &self.job.machine;
        let doing = &self.job.threads[thread].steps[step];
        if let (Error::OutOfMemory { .. }, ProgramStep::Allocate { .. }) = (&error, doing) {
            let size = |pages: PageCount| format_size(pages.bytes(self.job.page_size()));
            return Error::OomKill {
                step: self.job.step_name(thread, step),
                held: size(self.spaces[self.job.threads[thread].process].process.held),
                limit: machine.cache_limit.map(size).unwrap_or_default(),
                key: machine.limit_key().unwrap_or("memory_max"),
            };
        }
        let has_file = !self.job.is_single_mapping();
        let limit = machine.cache_limit.zip(machine.limit_key()).filter(|_| has_file);
        match (error, limit) {
            (Error::OutOfMemory { index }, Some((limit, key))) => {
                let file = self.job.step_file(&self.job.threads[thread].steps[step]);
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

    pub(super) fn bus_error(&self, step: String, mapping: usize, page: u64) -> Error {
        let named = &self.job.mappings[mapping];
        let file = &self.job.files[self.job.opens[named.open].file];
        Error::Bus { step, page, mapping: named.name.clone(), file: file.name.clone() }
    }
}

impl ProcessSpace {
    fn new(process: usize, job: &Job, profile: &Profile) -> ProcessSpace {
        let tlb = Tlb::new(profile.itlb, job.page_size());
        let locks = job.waits_for_locks(process).then(Locks::default);
        ProcessSpace {
            process: Process { locks, ..Process::new(tlb) },
            mapped: vec![None; job.mappings.len()],
            governed: vec![None; job.mappings.len()],
        }
    }
}

/// Pairs of process and mapping, for mappings that exist from the start and are used by threads of
/// the process.
fn mapped_at_start(job: &Job) -> Vec<(usize, usize)> {
    let used = job.threads.iter().flat_map(|thread| {
        let mappings = thread.steps.iter().filter_map(ProgramStep::mapping);
        mappings.map(|mapping| (thread.process, mapping))
    });
    let mut used: BTreeSet<(usize, usize)> = used.collect();
    // Mappings that no thread uses belong to the first process.
    used.extend((0..job.mappings.len()).map(|mapping| (0, mapping)));
    used.into_iter().filter(|(_, mapping)| job.mappings[*mapping].at_start).collect()
}

/// Start addresses of the mappings: consecutive, each in page-table pages of its own.
fn starts(job: &Job) -> Vec<Vpn> {
    let entries = job.machine.arch.pte_entries;
    let mut next = 0;
    let starts = job.mappings.iter().map(|named| {
        let start = next + named.mapping.shift.0;
        next = (start + named.span().0).next_multiple_of(entries);
        Vpn(start)
    });
    starts.collect()
}
