//! What is asked of a run, and how it is made.

use super::RunRecord;
use crate::engine::{self, Engines};
use crate::error::Error;
use crate::explain;
use crate::planned::Planned;
use crate::seeds::{self, with_seeds};

/// What is asked of a run beside its job.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// How many seeds, where that was said.
    pub seeds: Option<u64>,
    /// Whether settings of the machine may be changed.
    pub apply: bool,
    /// Whether the course of the first run is wanted too.
    pub history: bool,
}

/// Runs the job that is `planned` on `engines`.
///
/// # Errors
/// Those of the engines.
pub fn run(mut planned: Planned, engines: &impl Engines, asked: Asked) -> Result<RunRecord, Error> {
    let (jobs, count) = (std::slice::from_ref(&planned.job), asked.seeds.unwrap_or(1));
    let profiles = std::slice::from_mut(&mut planned.profile);
    let begun = seeds::spent();
    let mut records = engine::run_jobs(engines, jobs, profiles, count, asked.apply)?;
    let mut record = records.pop().expect("one job has one record");
    planned.warn(&mut record, asked.seeds, seeds::spent() - begun)?;
    let Planned { given, job, profile, .. } = planned;
    let history = if asked.history { explain::course(&job, &profile, &record)? } else { None };
    let command = with_seeds(given.command("run", &job), asked.seeds);
    Ok(RunRecord::new(record, &job, history, command))
}
