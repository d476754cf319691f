//! The run of a job of one file: that of the program that it is, and what it says of the one file.

use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_job::{Job, Run};

use super::record::Done;
use super::{With, begin, finish};
use crate::Error;
use crate::extents::ExtentCache;
use crate::profile::Profile;
use crate::world::Timing;

/// One run with the cache as it was left.
#[derive(Clone, Debug)]
pub struct Traced<C> {
    /// Counters and times.
    pub run: Run,
    /// The page cache at the end.
    pub cache: C,
    /// What each phase did, in order.
    pub phases: Vec<Done>,
}

/// Runs `job` once on a cache of the kind that engines use, sending its decisions to `log`.
///
/// # Errors
/// When the memory is too small to hold what one access needs.
pub fn trace(
    job: &Job,
    profile: &Profile,
    log: &mut impl Log,
) -> Result<Traced<ExtentCache>, Error> {
    trace_on(job, profile, Timing::Device, ExtentCache::new(job.machine.cache_limit), log)
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
    trace_with(job, profile, With { timing, ..With::default() }, cache, log)
}

fn trace_with<C: PageCache>(
    job: &Job,
    profile: &Profile,
    with: With,
    cache: C,
    log: &mut impl Log,
) -> Result<Traced<C>, Error> {
    let program = job.program();
    let mut running = begin(&program, profile, with, cache, log)?;
    let (run, threads) = finish(&mut running)?;
    let run = Run::of(job, run);
    Ok(Traced { run, cache: running.world.memory.cache, phases: threads[0].done.clone() })
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
        let traced = trace_with(&job, &Profile::DEFAULT, with, cache, &mut last);
        (traced.err(), last.0)
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
