//! Jobs shaped like programs.

mod cursor;
mod fair;
mod populate;
mod record;
mod schedule;

use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageCount, Vpn};
use filemap_job::bounds::MAX_MODEL_BYTES;
use filemap_job::program::{Fadvise, Madvise, Program, ProgramRecord, ProgramRun, ProgramStep};
use filemap_job::{Engine, EngineKind, Ready, format_size};

use crate::Error;
use crate::device::Device;
use crate::engine::{Model, environment};
use crate::extents::ExtentCache;
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

impl Engine<Program> for Model {
    type Error = Error;
    type Ready = ReadyProgram;

    fn prepare_all(&self, programs: &[&Program]) -> Result<Vec<ReadyProgram>, Error> {
        let ready = |program: &&Program| ReadyProgram {
            program: (*program).clone(),
            profile: self.profile,
        };
        Ok(programs.iter().map(ready).collect())
    }
}

/// A program of the model.
#[derive(Clone, Debug)]
pub struct ReadyProgram {
    program: Program,
    profile: Profile,
}

impl Ready for ReadyProgram {
    type Error = Error;
    type Run = ProgramRun;
    type Record = ProgramRecord;

    fn seed(&self) -> u64 {
        self.program.seed
    }

    fn take_turn(&mut self, seed: u64) -> Result<Vec<ProgramRun>, Error> {
        let run = trace_program(&self.program.with_seed(seed), &self.profile, &mut ())?;
        // Runs differ in nothing, so one stands for all of them.
        Ok(vec![run; self.program.runs as usize])
    }

    fn record(self, runs: Vec<ProgramRun>) -> ProgramRecord {
        let environment = environment(&self.program.machine, &self.profile);
        ProgramRecord::new(&self.program, EngineKind::Model.name(), environment, runs)
    }
}

/// Runs `program` on a cache of the kind that engines use, sending its decisions to `log`.
///
/// # Errors
/// When the memory is too small to hold what one access needs, or a page behind the end of a file
/// is touched.
pub fn trace_program(
    program: &Program,
    profile: &Profile,
    log: &mut impl Log,
) -> Result<ProgramRun, Error> {
    let cache = ExtentCache::new(program.machine.cache_limit);
    trace_program_on(program, profile, Timing::Device, cache, log)
}

/// [`trace_program`] with this timing on a given empty cache.
///
/// # Errors
/// As for [`trace_program`].
pub fn trace_program_on<C: PageCache>(
    program: &Program,
    profile: &Profile,
    timing: Timing,
    cache: C,
    log: &mut impl Log,
) -> Result<ProgramRun, Error> {
    if program.wants_huge_pages() && !profile.huge_pages {
        return Err(Error::NoHugePages);
    }
    if timing == Timing::Settled && program.threads.len() > 1 {
        return Err(Error::SettledThreads { threads: program.threads.len() });
    }
    let mut running = Running::new(program, profile, timing, cache, log);
    running.world.bound(MAX_MODEL_BYTES, program.steps().map(ProgramStep::accesses));
    let done = schedule::run(&mut running)?;
    Ok(record::of(&mut running, &done))
}

/// A program under way.
struct Running<'p, 'a, C, L> {
    program: &'p Program,
    world: World<'a, C, L>,
    process: Process,
    opens: Vec<OpenFile>,
    /// Each mapping, while it is there.
    mapped: Vec<Option<Area>>,
    /// Where each mapping begins when it is there.
    starts: Vec<Vpn>,
}

/// The device of files with blocks; the other one fills holes.
const DISK: usize = 0;
const HOLES: usize = 1;

impl<'p, 'a, C: PageCache, L: Log> Running<'p, 'a, C, L> {
    fn new(
        program: &'p Program,
        profile: &'a Profile,
        timing: Timing,
        cache: C,
        log: &'a mut L,
    ) -> Running<'p, 'a, C, L> {
        let files = program.files.len();
        let device = |sparse| Device::new(setup::device(sparse, profile), program.page_size());
        let mut memory = Memory::new(&program.machine, files, cache);
        memory.hold(program.anonymous);
        let devices = vec![device(false), device(true)];
        let opens = program.opens.iter().map(|open| {
            let file = &program.files[open.file].file;
            let pages = program.file_pages(open.file);
            let device = if file.sparse { HOLES } else { DISK };
            let limits = setup::limits(program.rules, &program.machine, pages, profile);
            OpenFile::new(FileId::new(open.file as u32), file.size_bytes, device, limits)
        });
        let mut running = Running {
            program,
            opens: opens.collect(),
            world: World::new(profile, timing, memory, devices, Journal::new(log)),
            process: Process::new(Tlb::new(profile.itlb, program.page_size())),
            mapped: vec![None; program.mappings.len()],
            starts: starts(program),
        };
        for (number, mapping) in program.mappings.iter().enumerate() {
            if mapping.at_start {
                running.map(number);
            }
        }
        running
    }

    fn map(&mut self, number: usize) {
        let of = &self.program.mappings[number];
        let mut mapping = setup::mapping(&of.mapping, self.starts[number]);
        mapping.no_reuse = self.opens[of.open].no_reuse;
        let file = self.opens[of.open].file;
        let layer = self.world.memory.mappings.of_mut(file).insert(mapping.clone());
        self.mapped[number] = Some(Area { mapping, layer });
    }

    /// Mapping `number`, its open file, and a task to work on them.
    fn through(&mut self, number: usize) -> (&mut Area, &mut OpenFile, Task<'_, 'a, C, L>) {
        let area = self.mapped[number].as_mut().expect("validated: it is mapped");
        let open = &mut self.opens[self.program.mappings[number].open];
        (area, open, Task { world: &mut self.world, process: &mut self.process })
    }

    /// Goes on with a fault on a page of mapping `number`, whose VMA advice may have cut anew while
    /// the thread waited.
    ///
    /// # Errors
    /// As for [`FaultUnderWay::go_on`].
    fn go_on(&mut self, number: usize, fault: &mut FaultUnderWay) -> Result<Option<Pause>, Error> {
        let (area, open, mut task) = self.through(number);
        fault.find_vma(area);
        fault.go_on(&mut task, open)
    }

    fn unmap(&mut self, number: usize) {
        let area = self.mapped[number].take().expect("validated: it is mapped");
        let open = &self.opens[self.program.mappings[number].open];
        Task { world: &mut self.world, process: &mut self.process }.unmap(&area, open);
    }

    fn madvise(&mut self, number: usize, advice: Madvise, part: (PageCount, PageCount)) {
        let (area, open, mut task) = self.through(number);
        task.madvise(area, advice, part, open);
    }

    fn fadvise(&mut self, number: usize, advice: Fadvise, offset: u64, len: Option<u64>) {
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
    fn told(&self, error: Error, thread: usize, step: usize) -> Error {
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

    fn bus(&self, step: String, mapping: usize, page: u64) -> Error {
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
