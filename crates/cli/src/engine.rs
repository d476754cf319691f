//! The engines, and how many jobs are run on them.

use filemap_job::{Engine, EngineKind, Job, Record};
use filemap_model::{Model, Profile};
use rayon::prelude::*;

use crate::error::Error;
use crate::progress::Progress;

/// Runs `jobs`; the records are in the order of the jobs. Jobs of the model run in parallel.
pub fn run_all(jobs: &[Job], profile: &Profile) -> Result<Vec<Record>, Error> {
    for job in jobs {
        check(job)?;
    }
    let progress = Progress::new(jobs.len());
    let run = |job: &Job| {
        let record = Model { profile: *profile }.run(job)?;
        progress.advance();
        Ok(record)
    };
    // One job a piece: they differ in length by far.
    jobs.par_iter().with_max_len(1).map(run).collect()
}

/// Whether there is an engine for `job`.
///
/// # Errors
/// For an engine that this build does not have.
pub fn check(job: &Job) -> Result<(), Error> {
    match job.engine {
        EngineKind::Model => Ok(()),
        EngineKind::Kernel => Err(Error::CannotRun(
            "--on kernel: the kernel engine is not built yet; give --on model".to_string(),
        )),
    }
}
