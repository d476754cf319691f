//! A job in both variants.

use filemap_core::fault::lock;
use filemap_job::{Job, JobSpec, Run, ShownLog};
use filemap_model::{Profile, trace};
use filemap_study::search::Cost;

use super::{Decisions, mechanism};
use crate::error::Error;

/// What a job costs in both variants.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The job without its variants.
    pub spec: JobSpec,
    /// How many accesses it makes.
    pub accesses: u64,
    /// What it costs in the first variant.
    pub first: Cost,
    /// What it costs in the second variant.
    pub second: Cost,
}

impl Tried {
    /// The job of `spec`, which is `job`, with its `runs` in both variants.
    pub fn new(spec: JobSpec, job: &Job, runs: &[Run]) -> Self {
        let [first, second] = [&runs[0], &runs[1]].map(|run| Cost {
            bytes_read: run.counters.bytes_read.unwrap_or(0),
            major_faults: run.counters.major_faults.unwrap_or(0),
            elapsed_ns: run.elapsed_ns.unwrap_or(0),
        });
        Tried { spec, accesses: accesses(job), first, second }
    }
}

/// How many accesses `job` makes.
fn accesses(job: &Job) -> u64 {
    job.accesses().map(|phase| phase.accesses).sum()
}

/// By which mechanism a job in two variants differs; `None` where it does not.
///
/// # Errors
/// Those of the model.
pub fn mechanism_of(jobs: [&Job; 2], profile: &Profile) -> Result<Option<String>, Error> {
    let mut logs = jobs.map(|job| ShownLog::default().beginning_with(lock::of_access(&job.rules)));
    for (job, log) in jobs.iter().zip(&mut logs) {
        trace(job, profile, log)?;
    }
    let [first, second] = logs.map(ShownLog::into_lines);
    if let Some(mechanism) = mechanism::of(&first, &second) {
        return Ok(Some(mechanism));
    }
    let mut all: [Decisions; 2] = Default::default();
    for (job, log) in jobs.iter().zip(&mut all) {
        trace(job, profile, log)?;
    }
    Ok(mechanism::unseen(&all[0], &all[1]))
}
