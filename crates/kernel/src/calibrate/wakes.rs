//! What it costs to wake a thread, on the CPU of the one that wakes it and on another one.

use filemap_job::program::Job;

use crate::Error;
use crate::engine::{HostKernel, PreparedJob};

/// A program on one CPU and on all of them, ready to run.
#[derive(Debug)]
pub struct WakeBench {
    on_one: PreparedJob,
    on_all: PreparedJob,
    rounds: f64,
}

/// Nanoseconds from a wake-up to the next, the mean of a run.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct WakeSample {
    pub on_one: f64,
    pub on_all: f64,
}

impl WakeBench {
    /// Of a program whose threads do their phases so often.
    ///
    /// # Errors
    /// A program that cannot be run here.
    pub fn prepare(
        kernel: &HostKernel,
        on_one: &Job,
        on_all: &Job,
        rounds: f64,
    ) -> Result<WakeBench, Error> {
        let (on_one, on_all) = (kernel.prepare(on_one)?, kernel.prepare(on_all)?);
        Ok(WakeBench { on_one, on_all, rounds })
    }

    /// Runs both once more.
    ///
    /// # Errors
    /// When one cannot be run.
    pub fn sample(&mut self) -> Result<WakeSample, Error> {
        let rounds = self.rounds;
        let wake_ns = |prepared: &mut PreparedJob| -> Result<f64, Error> {
            Ok(prepared.run()?.elapsed_ns.unwrap_or(0) as f64 / rounds)
        };
        Ok(WakeSample { on_one: wake_ns(&mut self.on_one)?, on_all: wake_ns(&mut self.on_all)? })
    }
}
