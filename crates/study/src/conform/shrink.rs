//! Shrinks a job while the kernel still differs in the same way.

use std::time::{Duration, Instant};

use filemap_core::series::Series;
use filemap_job::program::Job;
use filemap_job::{JobSpec, ShownKinds};

use super::bench::ConformBench;
use super::case::ConformCase;
use super::compared_kernel::job_file;
use super::comparison::LogComparison;
use super::evidence::model_lines;
use super::reason::DifferenceKey;
use super::record::Finding;
use crate::engine::Progress;
use crate::error::Error;
use crate::random_jobs::{shrink, with_accesses};

/// Maximum number of jobs tried while shrinking one.
const MAX_ATTEMPTS: usize = 150;

/// Number of jobs sent to a booted kernel together.
const SHRINK_BATCH: usize = 4;

/// Time limit for shrinking one job.
const SHRINK_TIMEOUT: Duration = Duration::from_secs(60);

/// The shrunk job.
pub(super) struct SmallestJob {
    /// The job as a job file.
    pub(super) text: String,
    pub(super) found: LogComparison,
    /// Whether all smaller jobs were tried within the time limit.
    pub(super) is_all: bool,
}

/// What shrinking needs besides the job.
#[derive(Clone, Copy)]
pub(super) struct ShrinkContext<'a> {
    /// Makes a job for the compared kernel.
    pub(super) validate: &'a dyn Fn(&JobSpec) -> Result<Job, filemap_job::Error>,
    /// Series with which the model agrees with the kernel: only jobs in which the model decides
    /// differently with it are tried.
    pub(super) like: Option<Series>,
    pub(super) progress: &'a dyn Progress,
}

/// The smallest job found in which the kernel of `bench` differs from the model as in `case`.
///
/// # Errors
/// Errors of the bench.
pub(super) fn shrink_job(
    bench: &mut ConformBench,
    case: &ConformCase,
    trying: ShrinkContext,
) -> Result<SmallestJob, Error> {
    let found = case.found.clone();
    let (Some(spec), Some(alike)) = (case.spec, &case.found.alike) else {
        return Ok(SmallestJob { text: case.text.to_string(), found, is_all: true });
    };
    let spec = &with_accesses(spec, case.job);
    let begun = Instant::now();
    let last = |found: &LogComparison| found.first.as_ref()?.access;
    let mut is_all = true;
    let (spec, found) = shrink(spec, found, MAX_ATTEMPTS, last, |specs| {
        let valid = specs.iter().enumerate();
        let valid = valid.filter_map(|(at, spec)| Some((at, (trying.validate)(spec).ok()?)));
        let mut tried: Vec<(usize, Job)> = Vec::new();
        for (at, job) in valid {
            if distinguishes(&job, trying.like, case.found.io_bytes, bench.seen)? {
                tried.push((at, job));
            }
        }
        // In small batches: a booted kernel runs all jobs it was sent, even after one that differs.
        for few in tried.chunks(SHRINK_BATCH) {
            is_all &= begun.elapsed() < SHRINK_TIMEOUT;
            if !is_all {
                break;
            }
            if let Some(differing) = first_with_same_difference(bench, few, alike, trying.progress)?
            {
                return Ok(Some(differing));
            }
        }
        Ok(None)
    })?;
    // Without a readahead size in the job, other commands would use this machine's.
    let job = (trying.validate)(&spec)?;
    let text = job_file(&JobSpec { read_ahead_kb: job.spec.read_ahead_kb, ..spec });
    Ok(SmallestJob { text, found, is_all })
}

/// Whether the model can run `job`, and decides differently in it with the series `like`.
fn distinguishes(
    job: &Job,
    like: Option<Series>,
    io_bytes: u64,
    seen: ShownKinds,
) -> Result<bool, Error> {
    let Some(like) = like else { return Ok(true) };
    let found = LogComparison { io_bytes, ..LogComparison::default() };
    let case = ConformCase { name: "", text: "", spec: None, job, file: 0, found: &found };
    let lines = |series| match model_lines(&case, series, seen) {
        // A smaller job may touch pages beyond its file.
        Err(Error::Model(_)) => Ok(None),
        lines => lines.map(Some),
    };
    Ok(lines(like)?.zip(lines(job.rules.series)?).is_some_and(|(like, own)| like != own))
}

/// The first of `few` in which kernel and model differ in the way `alike`. A job that cannot run
/// does not differ.
fn first_with_same_difference(
    bench: &mut ConformBench,
    few: &[(usize, Job)],
    alike: &DifferenceKey,
    progress: &dyn Progress,
) -> Result<Option<(usize, LogComparison)>, Error> {
    let mut differing = None;
    let jobs: Vec<&Job> = few.iter().map(|(_, job)| job).collect();
    bench.compare_all(&jobs, |number, found| {
        progress.advance();
        let found = match found {
            Err(error) if error.is_kernel_failure() => return Err(error.into()),
            found => found.ok().and_then(|found| found.into_iter().next()),
        };
        if let Some(Finding::Compared(found)) = found
            && found.alike.as_ref() == Some(alike)
        {
            differing = Some((few[number].0, found));
        }
        Ok(differing.is_none())
    })?;
    Ok(differing)
}
