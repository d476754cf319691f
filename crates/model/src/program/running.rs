//! A program under way: the world, its process, what it has open and mapped.

use filemap_core::address::advice::{AdviceFlag, ReadHint};
use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageCount, Vpn};
use filemap_job::format_size;
use filemap_job::program::{Fadvise, Madvise, Program};

use super::order::Order;
use crate::Error;
use crate::device::Device;
use crate::flushes::Flushes;
use crate::governor::{Governed, Governor};
use crate::journal::Journal;
use crate::memory::Memory;
use crate::open::OpenFile;
use crate::process::{Area, Process};
use crate::profile::Profile;
use crate::setup;
use crate::task::Task;
use crate::tlb::Tlb;
use crate::under_way::FaultUnderWay;
use crate::waiting::Pause;
use crate::world::{Timing, World};

/// A program under way.
pub(super) struct Running<'p, 'a, C, L> {
    pub(super) program: &'p Program,
    pub(super) world: World<'a, C, L>,
    pub(super) process: Process,
    pub(super) opens: Vec<OpenFile>,
    /// Each mapping, while it is there.
    pub(super) mapped: Vec<Option<Area>>,
    /// The mappings that a governor follows.
    governed: Vec<Option<Governed>>,
    /// What it knows of each file.
    governors: Vec<Governor>,
    /// Where each mapping begins when it is there.
    pub(super) starts: Vec<Vpn>,
    pub(super) order: Order<'p>,
}

/// The device of files with blocks; the other one fills holes.
const DISK: usize = 0;
const HOLES: usize = 1;

impl<'p, 'a, C: PageCache, L: Log> Running<'p, 'a, C, L> {
    pub(super) fn new(
        program: &'p Program,
        profile: &'a Profile,
        (timing, flushes): (Timing, Flushes),
        cache: C,
        log: &'a mut L,
    ) -> Running<'p, 'a, C, L> {
        let files = program.files.len();
        let device = |sparse| Device::new(setup::device(sparse, profile), program.page_size());
        let mut memory = Memory::new(&program.machine, program.rules, files, cache, flushes);
        memory.hold(program.anonymous);
        let devices = vec![device(false), device(true)];
        let opens = program.opens.iter().enumerate().map(|(number, open)| {
            let file = &program.files[open.file].file;
            let pages = program.file_pages(open.file);
            let device = if file.sparse { HOLES } else { DISK };
            let limits = setup::limits(program.rules, &program.machine, pages, profile);
            let of_file = FileId::new(open.file as u32);
            let open = OpenFile::new(of_file, file.size_bytes, device, limits);
            OpenFile { number: number as u32, ..open }
        });
        let limit = program.machine.cache_limit;
        let governor = Governor::new(profile, program.page_size(), limit);
        let mut running = Running {
            program,
            opens: opens.collect(),
            world: World::new(profile, timing, memory, devices, Journal::new(log)),
            process: Process::new(Tlb::new(profile.itlb, program.page_size())),
            mapped: vec![None; program.mappings.len()],
            governed: vec![None; program.mappings.len()],
            governors: vec![governor; files],
            starts: starts(program),
            order: Order::new(&program.threads),
        };
        for (number, mapping) in program.mappings.iter().enumerate() {
            if mapping.at_start {
                running.map(number);
            }
        }
        running
    }

    pub(super) fn map(&mut self, number: usize) {
        let of = &self.program.mappings[number];
        let mut mapping = setup::mapping(&of.mapping, self.starts[number], &self.program.rules);
        mapping.no_reuse = self.opens[of.open].no_reuse;
        let page_size = self.program.page_size();
        let is_governed =
            self.program.machine.governor && of.mapping.ungoverned(page_size).is_none();
        self.governed[number] = is_governed.then(|| Governed::advise(&mut mapping));
        let file = self.opens[of.open].file;
        let layer = self.world.memory.mappings.of_mut(file).insert(mapping.clone());
        self.mapped[number] = Some(Area { mapping, layer });
    }

    /// Mapping `number`, its open file, and a task to work on them.
    pub(super) fn through(
        &mut self,
        number: usize,
    ) -> (&mut Area, &mut OpenFile, Task<'_, 'a, C, L>) {
        let area = self.mapped[number].as_mut().expect("validated: it is mapped");
        let open = &mut self.opens[self.program.mappings[number].open];
        (area, open, Task { world: &mut self.world, process: &mut self.process })
    }

    /// Goes on with a fault on a page of mapping `number`, whose VMA advice may have cut anew while
    /// the thread waited.
    ///
    /// # Errors
    /// As for [`FaultUnderWay::go_on`].
    pub(super) fn go_on(
        &mut self,
        number: usize,
        fault: &mut FaultUnderWay,
    ) -> Result<Option<Pause>, Error> {
        let (area, open, mut task) = self.through(number);
        fault.find_vma(area);
        let pause = fault.go_on(&mut task, open)?;
        if pause.is_some() {
            return Ok(pause);
        }
        let Running { program, world, process, opens, mapped, governed, governors, .. } = self;
        if let (Some(seen), Some(governed), Some(area)) =
            (fault.seen(), &mut governed[number], &mut mapped[number])
        {
            let open = &mut opens[program.mappings[number].open];
            let governor = &mut governors[program.opens[open.number as usize].file];
            governor.fault(seen, governed, area, open, &mut Task { world, process });
        }
        Ok(None)
    }

    pub(super) fn unmap(&mut self, number: usize) {
        let area = self.mapped[number].take().expect("validated: it is mapped");
        self.governed[number] = None;
        let open = &self.opens[self.program.mappings[number].open];
        Task { world: &mut self.world, process: &mut self.process }.unmap(&area, open);
    }

    pub(super) fn madvise(&mut self, number: usize, advice: Madvise, part: (PageCount, PageCount)) {
        let stays_governed = matches!(advice, Madvise::WillNeed | Madvise::DontNeed);
        let yields = !stays_governed && self.governed[number].take().is_some();
        let (area, open, mut task) = self.through(number);
        if yields {
            // The program's word stands, from before the governor's.
            let (normal, whole) = (AdviceFlag::Read(ReadHint::Normal), area.mapping.whole.pages);
            task.madvise(area, Madvise::Flag(normal), (PageCount(0), whole), open);
        }
        task.madvise(area, advice, part, open);
    }

    pub(super) fn fadvise(
        &mut self,
        number: usize,
        advice: Fadvise,
        offset: u64,
        len: Option<u64>,
    ) {
        let open = &mut self.opens[number];
        let mut task = Task { world: &mut self.world, process: &mut self.process };
        task.fadvise(advice, offset, len, open);
        let areas = self.program.mappings.iter().zip(&mut self.mapped);
        for area in areas.filter(|(of, _)| of.open == number).filter_map(|(_, area)| area.as_mut())
        {
            task.reuse(area, open);
        }
    }

    /// `error`, which ended step number `step` of a thread, in the words of the program.
    pub(super) fn told(&self, error: Error, thread: usize, step: usize) -> Error {
        let machine = &self.program.machine;
        match (error, machine.cache_limit.zip(machine.limit_key())) {
            (Error::OutOfMemory { index }, Some((limit, key))) => {
                let file = self.program.file_of(&self.program.threads[thread].steps[step]);
                Error::ProgramOutOfMemory {
                    step: self.program.step_name(thread, step),
                    index,
                    file: self.program.files[file].name.clone(),
                    limit: format_size(limit.bytes(self.program.page_size())),
                    key,
                }
            }
            (error, _) => error,
        }
    }

    pub(super) fn bus(&self, step: String, mapping: usize, page: u64) -> Error {
        let of = &self.program.mappings[mapping];
        let file = &self.program.files[self.program.opens[of.open].file];
        Error::Bus { step, page, mapping: of.name.clone(), file: file.name.clone() }
    }
}

/// Where the mappings begin: one behind the other, each in page-table pages of its own.
fn starts(program: &Program) -> Vec<Vpn> {
    let entries = program.machine.arch.pte_entries;
    let mut next = 0;
    let starts = program.mappings.iter().map(|of| {
        let start = next + of.mapping.shift.0;
        next = (start + of.mapping.pages.0).next_multiple_of(entries);
        Vpn(start)
    });
    starts.collect()
}
