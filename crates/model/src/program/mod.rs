//! Runs jobs in virtual time.

mod access;
mod call;
mod cursor;
mod fair;
mod order;
mod record;
mod run;
mod schedule;
mod start;
mod stream;

use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_job::Run;
use filemap_job::bounds::MAX_MODEL_BYTES;
use filemap_job::program::{Job, ProgramStep};

use self::cursor::Cursor;
pub use self::cursor::StepStats;
use self::run::ProgramRun;
use crate::Error;
use crate::extents::ExtentCache;
use crate::memory::Flushes;
use crate::profile::Profile;
use crate::world::Timing;

/// Options of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunOptions {
    pub(crate) timing: Timing,
    pub(crate) flushes: Flushes,
    /// Maximum memory of the model itself, in bytes.
    pub(crate) max_bytes: u64,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        let (timing, flushes) = (Timing::Device, Flushes::TIMED);
        RunOptions { timing, flushes, max_bytes: MAX_MODEL_BYTES }
    }
}

/// A run together with the final page cache.
#[derive(Clone, Debug)]
pub struct TracedRun<C> {
    /// Counters and times, as in a record.
    pub run: Run,
    /// The page cache at the end.
    pub cache: C,
    /// Statistics of each phase of the first thread, in order.
    pub phases: Vec<StepStats>,
}

/// Runs `job` once on the cache used by engines, sending its decisions to `log`.
///
/// # Errors
/// If memory is too small for a single access, or a page past the end of a file is touched.
pub fn trace(job: &Job, profile: &Profile, log: &mut dyn Log) -> Result<Run, Error> {
    Ok(trace_timed(job, profile, Timing::Device, log)?.run)
}

/// [`trace`] with this timing, together with the final page cache.
///
/// Not generic, so that the engine is compiled in this crate, which is optimized in dev builds.
///
/// # Errors
/// As for [`trace`].
pub fn trace_timed(
    job: &Job,
    profile: &Profile,
    timing: Timing,
    log: &mut dyn Log,
) -> Result<TracedRun<ExtentCache>, Error> {
    let cache = ExtentCache::new(job.machine.cache_limit);
    trace_on(job, profile, timing, cache, log)
}

/// [`trace_timed`] on an empty `cache` of any kind.
///
/// # Errors
/// As for [`trace`].
pub fn trace_on<C: PageCache>(
    job: &Job,
    profile: &Profile,
    timing: Timing,
    cache: C,
    log: &mut dyn Log,
) -> Result<TracedRun<C>, Error> {
    let with = RunOptions { timing, ..RunOptions::default() };
    let mut running = begin(job, profile, with, cache, log)?;
    let (run, threads) = finish(&mut running)?;
    let run = run.into_recorded(job);
    Ok(TracedRun { run, cache: running.world.memory.cache, phases: threads[0].done.clone() })
}

/// Runs `job` on an empty `cache`, sending its decisions to `log`. The run is raw: records contain
/// [`Run::as_recorded`].
pub(crate) fn run_with<C: PageCache>(
    job: &Job,
    profile: &Profile,
    with: RunOptions,
    cache: C,
    log: &mut dyn Log,
) -> Result<Run, Error> {
    Ok(finish(&mut begin(job, profile, with, cache, log)?)?.0)
}

/// Runs a program to its end. Returns the run and the final state of its threads.
fn finish<'p, C: PageCache>(
    running: &mut ProgramRun<'p, '_, C>,
) -> Result<(Run, Vec<Cursor<'p>>), Error> {
    let threads = schedule::run(running).map_err(|stopped| running.describe_error(stopped))?;
    Ok((record::record_run(running, &threads), threads))
}

/// Sets up a program before its first step.
fn begin<'p, 'a, C: PageCache>(
    job: &'p Job,
    profile: &'a Profile,
    RunOptions { timing, flushes, max_bytes: most_bytes }: RunOptions,
    cache: C,
    log: &'a mut dyn Log,
) -> Result<ProgramRun<'p, 'a, C>, Error> {
    if job.wants_huge_pages() && !profile.huge_pages {
        return Err(Error::NoHugePages);
    }
    if timing != Timing::Device && job.threads.len() > 1 {
        return Err(Error::SettledThreads { threads: job.threads.len() });
    }
    let mut running = ProgramRun::new(job, profile, (timing, flushes), cache, log)?;
    running.world.limit_memory(most_bytes, job.steps().map(ProgramStep::accesses));
    Ok(running)
}

#[cfg(test)]
mod tests {
    use filemap_core::decision::Decision;
    use filemap_job::JobFlags;

    use super::*;

    /// Keeps the number of the last access.
    #[derive(Default)]
    struct LastAccess(u64);

    impl Log for LastAccess {
        fn record(&mut self, _: Decision) {}

        fn access(&mut self, number: u64) {
            self.0 = number;
        }
    }

    /// Runs a job of 10,000 accesses with this memory limit. Returns its error and its last access.
    fn ended(most_bytes: u64, more: &str) -> (Option<Error>, u64) {
        let spec = format!("workload = 'random'\nfile_size = '1p'\naccesses = 10000\n{more}");
        let job = JobFlags::from_toml(&spec).unwrap().validate(None).unwrap();
        let cache = ExtentCache::new(job.machine.cache_limit);
        let mut last = LastAccess::default();
        let with = RunOptions { max_bytes: most_bytes, ..RunOptions::default() };
        let run = run_with(&job, &Profile::DEFAULT, with, cache, &mut last);
        (run.err(), last.0)
    }

    #[test]
    fn a_job_that_takes_more_memory_than_allowed_ends() {
        let (error, last) = ended(4 << 20, "");
        assert!((1000..6000).contains(&last), "{last} accesses in 4 MiB");
        // The whole job takes some 8 MiB; the message rounds up to GiB.
        assert_eq!(error, Some(Error::TooLarge { needed_gib: 1, most_gib: 0 }));
        // A cache limit bounds the model's memory too: old evictions are forgotten.
        assert_eq!(ended(10 << 20, "ram = '16m'"), (None, 9_999));
    }
}
