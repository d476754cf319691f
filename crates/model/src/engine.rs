//! The engine: a job's runs, and the record of them.

use filemap_job::{Engine, EngineKind, Machine, Ready, Work};
use serde_json::{Map, Value, json};

use crate::Error;
use crate::flushes::Flushes;
use crate::profile::Profile;

/// The model as an engine.
#[derive(Clone, Debug)]
pub struct Model {
    /// The machine whose times are predicted.
    pub profile: Profile,
}

/// A job of a form that the model runs.
pub trait Modelled: Work {
    /// Refuses, before any job runs, what is too large for the model.
    ///
    /// # Errors
    /// Such a job.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Runs it once on a machine with `profile`, where it flushes statistics with these `flushes`.
    ///
    /// # Errors
    /// When the memory is too small to hold what one access needs, and others of its form.
    fn run_once(&self, profile: &Profile, flushes: Flushes) -> Result<Self::Run, Error>;
}

impl<W: Modelled> Engine<W> for Model {
    type Error = Error;
    type Ready = ReadyModel<W>;

    fn prepare_all(&self, jobs: &[&W]) -> Result<Vec<ReadyModel<W>>, Error> {
        jobs.iter().try_for_each(|job| job.check())?;
        let ready = |job: &&W| ReadyModel {
            job: (*job).clone(),
            profile: self.profile,
            flushes: Vec::new(),
        };
        Ok(jobs.iter().map(ready).collect())
    }
}

/// A job of the model.
#[derive(Clone, Debug)]
pub struct ReadyModel<W> {
    job: W,
    profile: Profile,
    /// Those that each run has, where they are not predicted.
    flushes: Vec<Flushes>,
}

impl<W: Modelled> Ready for ReadyModel<W> {
    type Error = Error;
    type Run = W::Run;
    type Record = W::Record;

    fn seed(&self) -> u64 {
        self.job.seed()
    }

    fn take_turn(&mut self, seed: u64) -> Result<Vec<W::Run>, Error> {
        let job = self.job.with_seed(seed);
        if self.flushes.is_empty() {
            // Runs differ in nothing, so one stands for all of them.
            let run = job.run_once(&self.profile, Flushes::TIMED)?;
            return Ok(vec![run; job.runs() as usize]);
        }
        self.flushes.iter().map(|flushes| job.run_once(&self.profile, flushes.clone())).collect()
    }

    fn flush_as(&mut self, runs: &[Vec<u64>]) {
        self.flushes = runs.iter().map(|run| Flushes::seen(run)).collect();
    }

    fn record(self, runs: Vec<W::Run>) -> W::Record {
        let mut environment = environment(self.job.machine(), &self.profile);
        if !self.flushes.is_empty() {
            environment.insert("flushes".into(), Flushes::SEEN.into());
        }
        self.job.record(EngineKind::Model, environment, runs)
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
