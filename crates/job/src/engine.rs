//! What runs jobs.

use crate::job::Job;
use crate::record::{Ran, Run};

/// Makes jobs ready to run: the model, the running kernel, or one that is booted.
pub trait Engine {
    /// Why a job could not be run.
    type Error;
    /// A job that is ready.
    type Ready: Ready<Error = Self::Error>;

    /// Makes ready what the runs of `jobs` need, in their order, so that what cannot be done is
    /// told before any of them runs. What was made goes when what is returned drops.
    ///
    /// # Errors
    /// When this engine cannot run one of them.
    fn prepare_all(&self, jobs: &[&Job]) -> Result<Vec<Self::Ready>, Self::Error>;

    /// Runs every run of `job`, with its own seed.
    ///
    /// # Errors
    /// When this engine cannot run the job, or a run fails.
    fn run(&self, job: &Job) -> Result<Ran, Self::Error> {
        let mut ready = self.prepare_all(&[job])?.pop().expect("one job is made ready");
        let mut runs = Vec::new();
        for _ in 0..ready.turns() {
            runs.extend(ready.take_turn(job.seed)?);
        }
        Ok(ready.ran(runs))
    }
}

/// A job that an engine has made ready.
pub trait Ready {
    /// Why a run failed.
    type Error;

    /// The seed that the job names.
    fn seed(&self) -> u64;

    /// In how many turns the runs of one seed are made. Between turns others have theirs, so that
    /// what changes on a machine meanwhile meets all of them.
    fn turns(&self) -> u64 {
        1
    }

    /// Jobs of one batch share something, such as a machine that is booted for them: all of one
    /// batch should have their turns before those of the next.
    fn batch(&self) -> usize {
        0
    }

    /// What the device of the job's file takes in one request, in bytes, where this is known of a
    /// device.
    fn io_bytes(&self) -> Option<u64> {
        None
    }

    /// Has run number `n` flush the statistics of its memory cgroup where entry `n` of `runs` says
    /// ([`crate::flushes`]): of an engine that predicts when that is.
    fn flush_as(&mut self, _runs: &[Vec<u64>]) {}

    /// Makes the runs of one turn with `seed`.
    ///
    /// # Errors
    /// When a run fails.
    fn take_turn(&mut self, seed: u64) -> Result<Vec<Run>, Self::Error>;

    /// What came of it, where `runs` are those of all turns.
    fn ran(self, runs: Vec<Run>) -> Ran;
}
