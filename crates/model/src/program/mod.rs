//! Jobs shaped like programs.

mod call;
mod cursor;
mod fair;
pub mod one_file;
mod order;
mod populate;
mod record;
mod running;
mod schedule;
mod spent;
mod stream;

use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_job::bounds::MAX_MODEL_BYTES;
use filemap_job::program::{Program, ProgramRun, ProgramStep};

use self::cursor::Cursor;
pub use self::record::Done;
use self::running::Running;
use crate::Error;
use crate::extents::ExtentCache;
use crate::flushes::Flushes;
use crate::profile::Profile;
use crate::world::Timing;

/// How a program is run.
#[derive(Clone, Debug)]
pub(crate) struct With {
    pub(crate) timing: Timing,
    pub(crate) flushes: Flushes,
    /// Most memory that the model itself may take.
    pub(crate) most_bytes: u64,
}

impl Default for With {
    fn default() -> With {
        let (timing, flushes) = (Timing::Device, Flushes::TIMED);
        With { timing, flushes, most_bytes: MAX_MODEL_BYTES }
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
    run_with(program, profile, With { timing, ..With::default() }, cache, log)
}

/// Runs `program` on a given empty cache, sending its decisions to `log`.
pub(crate) fn run_with<C: PageCache>(
    program: &Program,
    profile: &Profile,
    with: With,
    cache: C,
    log: &mut impl Log,
) -> Result<ProgramRun, Error> {
    Ok(finish(&mut begin(program, profile, with, cache, log)?)?.0)
}

/// Runs a program to its end: what came of it, and the threads as they are then.
fn finish<'p, C: PageCache, L: Log>(
    running: &mut Running<'p, '_, C, L>,
) -> Result<(ProgramRun, Vec<Cursor<'p>>), Error> {
    let threads = schedule::run(running).map_err(|stopped| running.told(stopped))?;
    Ok((record::of(running, &threads), threads))
}

/// A program before its first step.
fn begin<'p, 'a, C: PageCache, L: Log>(
    program: &'p Program,
    profile: &'a Profile,
    With { timing, flushes, most_bytes }: With,
    cache: C,
    log: &'a mut L,
) -> Result<Running<'p, 'a, C, L>, Error> {
    if program.wants_huge_pages() && !profile.huge_pages {
        return Err(Error::NoHugePages);
    }
    if timing == Timing::Settled && program.threads.len() > 1 {
        return Err(Error::SettledThreads { threads: program.threads.len() });
    }
    let mut running = Running::new(program, profile, (timing, flushes), cache, log);
    running.world.bound(most_bytes, program.steps().map(ProgramStep::accesses));
    Ok(running)
}
