//! Jobs that run in virtual time.

mod call;
mod cursor;
mod done;
mod fair;
mod order;
mod populate;
mod record;
mod running;
mod schedule;
mod spent;
mod stream;

use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_job::Run;
use filemap_job::bounds::MAX_MODEL_BYTES;
use filemap_job::program::{Job, ProgramStep};

use self::cursor::Cursor;
pub use self::done::Done;
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

/// One run with the cache as it was left.
#[derive(Clone, Debug)]
pub struct Traced<C> {
    /// Counters and times, as a record has them.
    pub run: Run,
    /// The page cache at the end.
    pub cache: C,
    /// What each phase of the first thread did, in order.
    pub phases: Vec<Done>,
}

/// Runs `job` once on a cache of the kind that engines use, sending its decisions to `log`;
/// what it did is told as a record has it.
///
/// # Errors
/// When the memory is too small to hold what one access needs, or a page after the end of a file
/// is touched.
pub fn trace(job: &Job, profile: &Profile, log: &mut impl Log) -> Result<Run, Error> {
    let cache = ExtentCache::new(job.machine.cache_limit);
    Ok(trace_on(job, profile, Timing::Device, cache, log)?.run)
}

/// [`trace`] with [`Timing::Settled`].
///
/// # Errors
/// As for [`trace`].
pub fn trace_settled(job: &Job, profile: &Profile, log: &mut impl Log) -> Result<Run, Error> {
    let cache = ExtentCache::new(job.machine.cache_limit);
    Ok(trace_on(job, profile, Timing::Settled, cache, log)?.run)
}

/// [`trace`] with this timing on a given empty cache.
///
/// # Errors
/// As for [`trace`].
pub fn trace_on<C: PageCache>(
    job: &Job,
    profile: &Profile,
    timing: Timing,
    cache: C,
    log: &mut impl Log,
) -> Result<Traced<C>, Error> {
    let with = With { timing, ..With::default() };
    let mut running = begin(job, profile, with, cache, log)?;
    let (run, threads) = finish(&mut running)?;
    let run = run.as_recorded(job);
    Ok(Traced { run, cache: running.world.memory.cache, phases: threads[0].done.clone() })
}

/// Runs `job` on a given empty cache, sending its decisions to `log`. The run is raw: a record
/// has that of [`Run::as_recorded`].
pub(crate) fn run_with<C: PageCache>(
    job: &Job,
    profile: &Profile,
    with: With,
    cache: C,
    log: &mut impl Log,
) -> Result<Run, Error> {
    Ok(finish(&mut begin(job, profile, with, cache, log)?)?.0)
}

/// Runs a program to its end: what came of it, and the threads as they are then.
fn finish<'p, C: PageCache, L: Log>(
    running: &mut Running<'p, '_, C, L>,
) -> Result<(Run, Vec<Cursor<'p>>), Error> {
    let threads = schedule::run(running).map_err(|stopped| running.told(stopped))?;
    Ok((record::of(running, &threads), threads))
}

/// A program before its first step.
fn begin<'p, 'a, C: PageCache, L: Log>(
    job: &'p Job,
    profile: &'a Profile,
    With { timing, flushes, most_bytes }: With,
    cache: C,
    log: &'a mut L,
) -> Result<Running<'p, 'a, C, L>, Error> {
    if job.wants_huge_pages() && !profile.huge_pages {
        return Err(Error::NoHugePages);
    }
    if timing != Timing::Device && job.threads.len() > 1 {
        return Err(Error::SettledThreads { threads: job.threads.len() });
    }
    let mut running = Running::new(job, profile, (timing, flushes), cache, log);
    running.world.bound(most_bytes, job.steps().map(ProgramStep::accesses));
    Ok(running)
}

#[cfg(test)]
mod tests {
    use filemap_core::decision::Decision;
    use filemap_job::JobSpec;

    use super::*;

    /// The number of the last access.
    #[derive(Default)]
    struct Last(u64);

    impl Log for Last {
        fn record(&mut self, _: Decision) {}

        fn access(&mut self, number: u64) {
            self.0 = number;
        }
    }

    /// How a job of 10,000 accesses ends that may take so much memory, and its last access.
    fn ended(most_bytes: u64, more: &str) -> (Option<Error>, u64) {
        let spec = format!("workload = 'random'\nfile_size = '1p'\naccesses = 10000\n{more}");
        let job = JobSpec::from_toml(&spec).unwrap().validate(None).unwrap();
        let cache = ExtentCache::new(job.machine.cache_limit);
        let mut last = Last::default();
        let with = With { most_bytes, ..With::default() };
        let run = run_with(&job, &Profile::DEFAULT, with, cache, &mut last);
        (run.err(), last.0)
    }

    #[test]
    fn a_job_that_takes_more_memory_than_allowed_ends() {
        let (error, last) = ended(4 << 20, "");
        assert!((1000..6000).contains(&last), "{last} accesses in 4 MiB");
        // All of them take some 8 MiB, and whole GiB are told.
        assert_eq!(error, Some(Error::TooLarge { needed_gib: 1, most_gib: 0 }));
        // A limit of the cache bounds that too: what is evicted is forgotten in the end.
        assert_eq!(ended(10 << 20, "ram = '16m'"), (None, 9_999));
    }
}
