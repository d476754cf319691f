//! Jobs shaped like programs.

mod cursor;
mod fair;
mod populate;
mod record;
mod running;
mod schedule;

use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_job::bounds::MAX_MODEL_BYTES;
use filemap_job::program::{Program, ProgramRecord, ProgramRun, ProgramStep};
use filemap_job::{Engine, EngineKind, Ready};

use self::running::Running;
use crate::Error;
use crate::engine::{Model, environment};
use crate::extents::ExtentCache;
use crate::profile::Profile;
use crate::world::Timing;

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
