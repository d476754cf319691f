//! Jobs shaped like programs.

use filemap_core::address::vma::Advice;
use filemap_core::cache::FileCache;
use filemap_core::decision::Log;
use filemap_core::fault::Access;
use filemap_core::page_cache::PageCache;
use filemap_core::readahead::ReadaheadState;
use filemap_core::units::{FileId, PageIndex, Vpn};
use filemap_job::Counters;
use filemap_job::bounds::MAX_MODEL_BYTES;
use filemap_job::program::{
    FileRun, MappingRun, PhaseRun, Program, ProgramRecord, ProgramRun, ProgramSpec, ProgramStep,
    ThreadRun,
};

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
use crate::tally::Tally;
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
    // Runs differ in nothing, so one stands for all of them.
    let runs = vec![run; program.runs as usize];
    Ok(ProgramRecord::new(spec.clone(), "model", environment(&program.machine, profile), runs))
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
    let mut running = Running::new(program, profile, timing, cache, log);
    running.world.bound(MAX_MODEL_BYTES, program.steps().map(ProgramStep::accesses));
    let mut done = Vec::with_capacity(program.steps().count());
    for (thread, of) in program.threads.iter().enumerate() {
        for (number, step) in of.steps.iter().enumerate() {
            let began_ns = running.world.now_ns();
            let mmap_miss = running.opens[running.open_of(step)].ra.mmap_miss;
            let before = running.world.begin_phase(mmap_miss);
            running.step(thread, number, step)?;
            let tally = running.world.tally.since(&before);
            let ended_ns = running.world.now_ns();
            done.push(Done { thread, tally, elapsed_ns: ended_ns - began_ns, ended_ns });
        }
    }
    Ok(running.finish(&done))
}

/// What a step did.
struct Done {
    thread: usize,
    tally: Tally,
    elapsed_ns: u64,
    ended_ns: u64,
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

    fn step(&mut self, thread: usize, number: usize, step: &ProgramStep) -> Result<(), Error> {
        match step {
            ProgramStep::Map { mapping } => self.map(*mapping),
            ProgramStep::Unmap { mapping } => self.unmap(*mapping),
            ProgramStep::Touch { mapping, accesses, write, think_ns } => {
                let access = if *write { Access::WritePrivate } else { Access::Read };
                let beyond = self.program.beyond_file(*mapping);
                let area = self.mapped[*mapping].expect("validated: it is mapped");
                let open = &mut self.opens[self.program.mappings[*mapping].open];
                let mut task = Task { world: &mut self.world, process: &mut self.process };
                for page in self.program.touches(*mapping, accesses) {
                    if beyond.is_some_and(|beyond| page >= beyond.0) {
                        return Err(self.bus(
                            self.program.step_name(thread, number),
                            *mapping,
                            page,
                        ));
                    }
                    task.touch(&area.locate(page), access, open)?;
                    task.world.pass(*think_ns);
                    task.world.settle();
                }
            }
            ProgramStep::Read { open, offset_bytes, len_bytes, accesses, think_ns } => {
                let open = &mut self.opens[*open];
                let mut task = Task { world: &mut self.world, process: &mut self.process };
                for block in self.program.reads(*len_bytes, accesses) {
                    task.read(offset_bytes + block.offset_bytes, block.len_bytes, open)?;
                    task.world.pass(*think_ns);
                    task.world.settle();
                }
            }
        }
        Ok(())
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

    /// The open file that a step is about.
    fn open_of(&self, step: &ProgramStep) -> usize {
        match step {
            ProgramStep::Map { mapping }
            | ProgramStep::Unmap { mapping }
            | ProgramStep::Touch { mapping, .. } => self.program.mappings[*mapping].open,
            ProgramStep::Read { open, .. } => *open,
        }
    }

    fn finish(&mut self, done: &[Done]) -> ProgramRun {
        let steps = || self.program.steps().zip(done);
        let sum = |of: &dyn Fn(&ProgramStep) -> bool| {
            let tallies = steps().filter(|(step, _)| of(step)).map(|(_, done)| &done.tally);
            tallies.fold(Tally::default(), |sum, tally| sum.with(tally))
        };
        let by_file: Vec<Tally> = (0..self.program.files.len())
            .map(|file| sum(&|step| self.program.opens[self.open_of(step)].file == file))
            .collect();
        let touches = |step: &ProgramStep, number: usize| match step {
            ProgramStep::Touch { mapping, .. } => *mapping == number,
            _ => false,
        };
        let by_mapping: Vec<Tally> = (0..self.program.mappings.len())
            .map(|number| sum(&|step| touches(step, number)))
            .collect();
        let timed = self.world.timing == Timing::Device;
        let phases = steps().map(|(step, done)| PhaseRun {
            thread: self.program.threads[done.thread].name.clone(),
            does: self.describe(step),
            elapsed_ns: timed.then_some(done.elapsed_ns),
            counters: self.counters(&done.tally, self.open_of(step)),
        });
        let phases = phases.collect();
        let threads = self.program.threads.iter().enumerate().map(|(number, thread)| {
            let of_it = || steps().filter(|(_, done)| done.thread == number);
            let sum = of_it().fold(Tally::default(), |sum, (_, done)| sum.with(&done.tally));
            let reads =
                of_it().map(|(step, done)| self.bytes_read(&done.tally, self.open_of(step)));
            let counters = Counters { bytes_read: Some(reads.sum()), ..sum.counters() };
            let elapsed_ns = of_it().map(|(_, done)| done.ended_ns).max().filter(|_| timed);
            ThreadRun { name: thread.name.clone(), elapsed_ns, counters }
        });
        let threads = threads.collect();
        let named = self.program.mappings.iter().zip(&by_mapping);
        let mappings = named.map(|(mapping, tally)| MappingRun {
            name: mapping.name.clone(),
            counters: self.counters(tally, mapping.open),
        });
        let mappings = mappings.collect();
        let blocks = self.program.files.iter().zip(&by_file);
        let read = blocks.filter(|(file, _)| !file.file.sparse).map(|(_, tally)| tally.pages_read);
        let bytes_read = read.sum::<u64>() * self.program.page_size();
        let highest = done.iter().map(|done| done.tally.mmap_miss_max).max().unwrap_or(0);
        let tally = Tally { mmap_miss_max: highest, ..self.world.tally };
        let counters = Counters { bytes_read: Some(bytes_read), ..tally.counters() };
        let mut files = Vec::with_capacity(by_file.len());
        for (number, tally) in by_file.iter().enumerate() {
            files.push(self.file(number, tally));
        }
        let elapsed_ns = timed.then(|| self.world.now_ns());
        ProgramRun { elapsed_ns, counters, files, mappings, threads, phases }
    }

    fn file(&mut self, number: usize, tally: &Tally) -> FileRun {
        let file = FileId::new(number as u32);
        let end = PageIndex(self.program.file_pages(number).0);
        let cached = self.world.memory.cache.file(file).cached(PageIndex(0), end);
        FileRun {
            name: self.program.files[number].name.clone(),
            data_pages_read: Some(tally.pages_read),
            major_faults: Some(tally.major_faults),
            // What was read leaves by eviction only.
            evicted_pages: Some(tally.pages_read - cached.0),
            cached: Some(cached.0),
        }
    }

    fn counters(&self, tally: &Tally, open: usize) -> Counters {
        Counters { bytes_read: Some(self.bytes_read(tally, open)), ..tally.counters() }
    }

    fn bytes_read(&self, tally: &Tally, open: usize) -> u64 {
        let sparse = self.program.files[self.program.opens[open].file].file.sparse;
        if sparse { 0 } else { tally.pages_read * self.program.page_size() }
    }

    fn describe(&self, step: &ProgramStep) -> String {
        let mapping = |number: &usize| &self.program.mappings[*number].name;
        match step {
            ProgramStep::Map { mapping: number } => format!("map {}", mapping(number)),
            ProgramStep::Unmap { mapping: number } => format!("unmap {}", mapping(number)),
            ProgramStep::Touch { mapping: number, accesses, write, .. } => {
                let does = if *write { "write" } else { "touch" };
                format!("{does} {}: {}", mapping(number), accesses.pattern)
            }
            ProgramStep::Read { open, accesses, .. } => {
                format!("read {}: {}", self.program.opens[*open].name, accesses.pattern)
            }
        }
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
