//! Runs of threads that wait: what is asked for, and what came out.

use filemap_job::waits::Wait;
use serde_json::{Map, Value};

use super::run::Run;
use crate::error::Error;

/// What an engine has that runs threads that wait.
#[derive(Clone, Debug, Default)]
pub struct Simulation {
    /// What it assumes that things cost: names, and nanoseconds.
    pub costs: Vec<(&'static str, u64)>,
    /// By which rules of Linux it runs.
    pub kernel: String,
    /// What it says of itself.
    pub environment: Map<String, Value>,
}

/// What differs from the machine as it is assumed to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// The cost of this name is at so many percent.
    Cost(&'static str, u64),
}

/// One run of threads, each of which maps a sparse file of its own, reads every page, unmaps it,
/// and begins again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    pub with_series: bool,
    pub seed: u64,
    /// Threads that read.
    pub threads: u64,
    pub cpus: u64,
    /// Pages of each file.
    pub file_pages: u64,
    pub read_ahead_pages: u64,
    /// `memory.high` and `memory.max`.
    pub high_pages: u64,
    pub max_pages: u64,
    /// Threads that change the protection of a mapping.
    pub writers: u64,
    /// All files lie in one VMA, to which the writers write too.
    pub one_vma: bool,
    /// What differs.
    pub change: Change,
    /// Virtual seconds.
    pub seconds: u64,
}

impl Trial {
    /// What all threads read ahead, as a share of what the cgroup holds.
    pub fn pressure(&self) -> f64 {
        (self.threads * self.read_ahead_pages) as f64 / self.high_pages as f64
    }

    /// The variant that it runs.
    pub fn variant(&self) -> &'static str {
        if self.with_series { "vma-retry" } else { "baseline" }
    }
}

/// What a trial came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialRun {
    /// Virtual nanoseconds that were counted.
    pub elapsed_ns: u64,
    /// Files mapped, read and unmapped.
    pub rounds: u64,
    /// Tries that dropped their lock for I/O (`retry_mmap_drop`).
    pub drops: u64,
    /// Every arrival at the retry path.
    pub retries: u64,
    /// Retries that found their page gone (`retry_io_miss`).
    pub misses: u64,
    /// Tries that could not have the lock of their VMA.
    pub refused: u64,
    /// Times that a writer changed the protection of its mapping.
    pub protections: u64,
    /// Times that a thread slept as it owed pages.
    pub throttled: u64,
    pub waits: Vec<Wait>,
    /// Why it ended before its time.
    pub ended_early: Option<String>,
}

impl TrialRun {
    /// Rounds a second.
    pub fn rounds_s(&self) -> f64 {
        self.rounds as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Misses of 100 drops.
    pub fn miss_percent(&self) -> f64 {
        self.misses as f64 * 100.0 / self.drops.max(1) as f64
    }

    /// Drops a round; `None` where no round was completed.
    pub fn drops_per_round(&self) -> Option<f64> {
        (self.rounds > 0).then(|| self.drops as f64 / self.rounds as f64)
    }

    /// Whether nothing came of it: it ended early, or completed no round.
    pub fn jams(&self) -> bool {
        self.ended_early.is_some() || self.rounds == 0
    }
}

/// Trials with what they came to.
#[derive(Clone, Debug, Default)]
pub struct Trials(Vec<(Trial, TrialRun)>);

impl Trials {
    /// Has `run` run those of `trials` that are not known.
    ///
    /// # Errors
    /// When one cannot be run.
    pub fn run<'a>(
        &mut self,
        trials: impl Iterator<Item = &'a Trial>,
        run: &Run<'_>,
    ) -> Result<(), Error> {
        let mut next: Vec<Trial> = Vec::new();
        for trial in trials {
            if self.find(trial).is_none() && !next.contains(trial) {
                next.push(trial.clone());
            }
        }
        let runs = run(&next)?;
        self.0.extend(next.into_iter().zip(runs));
        Ok(())
    }

    /// What `trial` came to, if it was run.
    pub fn find(&self, trial: &Trial) -> Option<&TrialRun> {
        self.0.iter().find(|(known, _)| known == trial).map(|(_, run)| run)
    }

    /// What `trial` came to.
    ///
    /// # Panics
    /// When it was not run.
    pub(super) fn of(&self, trial: &Trial) -> &TrialRun {
        self.find(trial).expect("a study has run the trials that it asks for")
    }
}
