//! What runs a job.

use crate::{Job, Record};

/// Runs jobs: the model in virtual time, or a real kernel.
pub trait Engine {
    /// Why a job could not be run.
    type Error;

    /// Runs every run of `job`.
    ///
    /// # Errors
    /// When this engine cannot run the job, or the run fails.
    fn run(&mut self, job: &Job) -> Result<Record, Self::Error>;
}
