//! A job in both variants, and what a search asks of jobs of each form.

use filemap_core::decision::Log;
use filemap_core::fault::lock;
use filemap_job::thrash::Until;
use filemap_job::{Job, JobSpec, Run, ShownLog, Thrash};
use filemap_model::thrash::trace_thrash;
use filemap_model::{Profile, trace};
use filemap_report::search::Cost;

use super::{Decisions, mechanism};
use crate::commands::FlagJob;
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
    pub fn new<J: Searched>(spec: JobSpec, job: &J, runs: &[Run]) -> Self {
        let [first, second] = [&runs[0], &runs[1]].map(|run| Cost {
            bytes_read: run.counters.bytes_read.unwrap_or(0),
            major_faults: run.counters.major_faults.unwrap_or(0),
            elapsed_ns: run.elapsed_ns.unwrap_or(0),
        });
        Tried { spec, accesses: job.accesses(), first, second }
    }
}

/// A form of jobs that a search can try.
pub trait Searched: FlagJob + PartialEq + Send + Sync {
    /// What a mechanism is, as a sentence.
    const MECHANISM: &str;

    /// How many accesses it makes.
    fn accesses(&self) -> u64;

    /// Runs it in the model, with its decisions in `log`.
    ///
    /// # Errors
    /// Those of the model.
    fn run(&self, profile: &Profile, log: &mut impl Log) -> Result<Run, Error>;

    /// By which mechanism a job in two variants differs, which came to `runs`; `None` where it
    /// does not.
    ///
    /// # Errors
    /// Those of the model.
    fn mechanism(
        jobs: [&Self; 2],
        runs: [&Run; 2],
        profile: &Profile,
    ) -> Result<Option<String>, Error>;
}

impl Searched for Job {
    const MECHANISM: &str = "A mechanism is the first decision that differs.";

    fn accesses(&self) -> u64 {
        self.phases.iter().map(|phase| phase.accesses).sum()
    }

    fn run(&self, profile: &Profile, log: &mut impl Log) -> Result<Run, Error> {
        Ok(trace(self, profile, log)?.run)
    }

    fn mechanism(
        jobs: [&Self; 2],
        _: [&Run; 2],
        profile: &Profile,
    ) -> Result<Option<String>, Error> {
        let mut logs =
            jobs.map(|job| ShownLog::default().beginning_with(lock::of_access(&job.rules)));
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
}

impl Searched for Thrash {
    const MECHANISM: &str = "A mechanism is the wait of the threads that changes most.";

    fn accesses(&self) -> u64 {
        match self.until {
            Until::Rounds(rounds) => rounds.saturating_mul(self.file_pages.0),
            Until::Elapsed(_) => self.threads.saturating_mul(self.file_pages.0),
        }
    }

    fn run(&self, profile: &Profile, log: &mut impl Log) -> Result<Run, Error> {
        Ok(trace_thrash(self, profile, log)?)
    }

    fn mechanism(_: [&Self; 2], runs: [&Run; 2], _: &Profile) -> Result<Option<String>, Error> {
        let waits = runs.map(|run| run.thrash.as_ref().map_or(&[][..], |thrash| &thrash.waits));
        Ok(mechanism::of_waits(waits[0], waits[1]))
    }
}
