//! Jobs shaped like programs.

mod cursor;
mod record;
mod schedule;

use filemap_core::address::vma::Advice;
use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_core::readahead::ReadaheadState;
use filemap_core::units::{FileId, Vpn};
use filemap_job::bounds::MAX_MODEL_BYTES;
use filemap_job::program::{Program, ProgramRecord, ProgramRun, ProgramSpec, ProgramStep};

use crate::Error;
use crate::device::Device;
use crate::engine::environment;
use crate::extents::ExtentCache;
use crate::journal::Journal;
use crate::memory::Memory;
use crate::open::OpenFile;
use crate::process::{Area, Process};
use crate::profile::Profile;
use crate::setup;
use crate::task::Task;
use crate::tlb::Tlb;
use crate::world::{Timing, World};

/// Runs `program`, which `spec` says, and makes a record of it.
///
/// # Errors
/// As for [`trace_program`].
pub fn run_program(
    spec: &ProgramSpec,
    program: &Program,
    profile: &Profile,
) -> Result<ProgramRecord, Error> {
    let run = trace_program(program, profile, &mut ())?;
    Ok(ProgramRecord::new(spec.clone(), "model", environment(&program.machine, profile), run))
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
    let huge = |advice| advice == Advice::HugePage;
    if program.mappings.iter().any(|of| huge(of.mapping.advice)) && !profile.huge_pages {
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

/// The open file that a step is about.
fn open_of(program: &Program, step: &ProgramStep) -> usize {
    match step {
        ProgramStep::Map { mapping }
        | ProgramStep::Unmap { mapping }
        | ProgramStep::Touch { mapping, .. } => program.mappings[*mapping].open,
        ProgramStep::Read { open, .. } => *open,
    }
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
            OpenFile {
                file: FileId::new(open.file as u32),
                size_bytes: file.size_bytes,
                device: if file.sparse { HOLES } else { DISK },
                limits: setup::limits(program.rules, &program.machine, pages, profile),
                ra: ReadaheadState::NEW,
            }
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
        let mapping = setup::mapping(&of.mapping, self.starts[number]);
        let file = self.opens[of.open].file;
        let layer = self.world.memory.mappings.of_mut(file).insert(mapping);
        self.mapped[number] = Some(Area { mapping, layer });
    }

    fn unmap(&mut self, number: usize) {
        let area = self.mapped[number].take().expect("validated: it is mapped");
        let open = &self.opens[self.program.mappings[number].open];
        Task { world: &mut self.world, process: &mut self.process }.unmap(&area, open);
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
