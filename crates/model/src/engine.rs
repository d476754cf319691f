//! The model as an engine for jobs.

use filemap_job::program::Job;
use filemap_job::{Engine, EngineKind, JobRuns, Machine, ReadyJob, Run};
use serde_json::{Map, Value, json};

use crate::Error;
use crate::extents::ExtentCache;
use crate::memory::Flushes;
use crate::profile::Profile;
use crate::program::{RunOptions, run_with};

/// The model as an engine.
#[derive(Clone, Debug)]
pub struct ModelEngine {
    /// The machine whose times are predicted.
    pub profile: Profile,
}

impl ModelEngine {
    /// The result of `job` with these `runs`.
    pub fn job_runs(&self, job: &Job, runs: Vec<Run>) -> JobRuns {
        let environment = environment(&job.machine, &self.profile);
        JobRuns { engine: EngineKind::Model, environment, runs }
    }
}

impl Engine for ModelEngine {
    type Error = Error;
    type Ready = ReadyModel;

    fn prepare_all(&self, jobs: &[&Job]) -> Result<Vec<ReadyModel>, Error> {
        let ready = |job: &&Job| ReadyModel {
            job: (*job).clone(),
            model: self.clone(),
            flushes: Vec::new(),
        };
        Ok(jobs.iter().map(ready).collect())
    }
}

/// A job prepared for the model.
#[derive(Clone, Debug)]
pub struct ReadyModel {
    job: Job,
    model: ModelEngine,
    /// Flush times of each run, if they are taken from a kernel.
    flushes: Vec<Flushes>,
}

impl ReadyJob for ReadyModel {
    type Error = Error;

    fn seed(&self) -> u64 {
        self.job.seed
    }

    fn take_turn(&mut self, seed: u64) -> Result<Vec<Run>, Error> {
        let job = self.job.with_seed(seed);
        let run = |flushes: Flushes| {
            let cache = ExtentCache::new(job.machine.cache_limit);
            let with = RunOptions { flushes, ..RunOptions::default() };
            run_with(&job, &self.model.profile, with, cache, &mut ())
        };
        if self.flushes.is_empty() {
            // All runs are identical, so one stands for all of them.
            return Ok(vec![run(Flushes::TIMED)?; job.runs as usize]);
        }
        self.flushes.iter().map(|flushes| run(flushes.clone())).collect()
    }

    fn flush_as(&mut self, runs: &[Vec<u64>]) {
        self.flushes = runs.iter().map(|run| Flushes::at_accesses(run)).collect();
    }

    fn into_job_runs(self, runs: Vec<Run>) -> JobRuns {
        let mut ran = self.model.job_runs(&self.job, runs);
        if !self.flushes.is_empty() {
            ran.environment.insert("flushes".into(), Flushes::FROM_KERNEL.into());
        }
        ran
    }
}

fn environment(machine: &Machine, profile: &Profile) -> Map<String, Value> {
    let scope = "classic LRU; no NUMA, writeback, truncation or swap";
    let environment = json!({
        "filemap": env!("CARGO_PKG_VERSION"),
        "scope": scope,
        "elapsed": "predicted from the machine profile",
        "profile_from": machine.profile.as_deref().unwrap_or("default"),
        "profile": profile,
    });
    match environment {
        Value::Object(map) => map,
        _ => unreachable!("an object literal"),
    }
}
