//! Jobs shaped like programs.

mod cursor;
mod fair;
mod order;
mod populate;
mod record;
mod running;
mod schedule;

use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_job::bounds::MAX_MODEL_BYTES;
use filemap_job::program::{Program, ProgramRun, ProgramStep};

use self::running::Running;
use crate::Error;
use crate::engine::Modelled;
use crate::extents::ExtentCache;
use crate::flushes::Flushes;
use crate::profile::Profile;
use crate::world::Timing;

impl Modelled for Program {
    fn run_once(&self, profile: &Profile, flushes: Flushes) -> Result<ProgramRun, Error> {
        let cache = ExtentCache::new(self.machine.cache_limit);
        trace_flushed(self, profile, (Timing::Device, flushes), cache, &mut ())
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
    trace_flushed(program, profile, (timing, Flushes::TIMED), cache, log)
}

/// [`trace_program_on`] with these `flushes`.
fn trace_flushed<C: PageCache>(
    program: &Program,
    profile: &Profile,
    (timing, flushes): (Timing, Flushes),
    cache: C,
    log: &mut impl Log,
) -> Result<ProgramRun, Error> {
    if program.wants_huge_pages() && !profile.huge_pages {
        return Err(Error::NoHugePages);
    }
    if timing == Timing::Settled && program.threads.len() > 1 {
        return Err(Error::SettledThreads { threads: program.threads.len() });
    }
    let mut running = Running::new(program, profile, (timing, flushes), cache, log);
    running.world.bound(MAX_MODEL_BYTES, program.steps().map(ProgramStep::accesses));
    let done = schedule::run(&mut running)?;
    Ok(record::of(&mut running, &done))
}
