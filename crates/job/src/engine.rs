//! The interface of engines, which run jobs.

use crate::job::Job;
use crate::record::{JobRuns, Run};

/// Prepares jobs to run: on the model, the running kernel or a booted one.
pub trait Engine {
    /// Error of a job that cannot be run.
    type Error;
    /// A prepared job.
    type Ready: ReadyJob<Error = Self::Error>;

    /// Prepares all `jobs`, in order, so that a job that cannot run is reported before any of them
    /// starts. Dropping the result undoes the preparation.
    ///
    /// # Errors
    /// If this engine cannot run one of them.
    fn prepare_all(&self, jobs: &[&Job]) -> Result<Vec<Self::Ready>, Self::Error>;

    /// Makes all runs of `job` with the seed of the job.
    ///
    /// # Errors
    /// If this engine cannot run the job, or a run fails.
    fn run(&self, job: &Job) -> Result<JobRuns, Self::Error> {
        let mut ready = self.prepare_all(&[job])?.pop().expect("one job is made ready");
        let mut runs = Vec::new();
        for _ in 0..ready.turns() {
            runs.extend(ready.take_turn(job.seed)?);
        }
        Ok(ready.into_job_runs(runs))
    }
}

/// A job prepared by an engine.
pub trait ReadyJob {
    /// Error of a failed run.
    type Error;

    /// The seed of the job.
    fn seed(&self) -> u64;

    /// Number of turns that the runs of one seed are divided into. Turns of different jobs are
    /// interleaved, so that drift of the machine affects all of them alike.
    fn turns(&self) -> u64 {
        1
    }

    /// Number of the job's batch. Jobs of a batch share a resource, such as a booted machine, so
    /// all turns of a batch should be taken before the next batch starts.
    fn batch(&self) -> usize {
        0
    }

    /// Maximum request size of the file's block device in bytes, if known.
    fn io_bytes(&self) -> Option<u64> {
        None
    }

    /// Makes run `n` flush the memory cgroup's statistics at the accesses in `runs[n]`
    /// ([`crate::flushes`]). Only for engines that predict these flushes.
    fn flush_as(&mut self, _runs: &[Vec<u64>]) {}

    /// Makes the runs of one turn with `seed`.
    ///
    /// # Errors
    /// If a run fails.
    fn take_turn(&mut self, seed: u64) -> Result<Vec<Run>, Self::Error>;

    /// The result of the job, given the runs of all turns.
    fn into_job_runs(self, runs: Vec<Run>) -> JobRuns;
}
