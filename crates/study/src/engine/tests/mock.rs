//! Mock engines that log their calls and return made-up results.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use filemap_job::{Counters, Engine, EngineKind, Job, JobRuns, PhaseRun, ReadyJob, Run, flushes};
use filemap_kernel::journal::Journal;
use filemap_model::Profile;
use serde_json::Map;

use super::super::{Engines, Progress, Undoing};
use crate::error::Error;

/// Mock engines. Clones share the log of calls.
#[derive(Clone, Default)]
pub struct Mock {
    asked: Arc<Mutex<Vec<String>>>,
    turns: Arc<Turns>,
    failing: Option<&'static str>,
    io_bytes: Option<u64>,
    flushes: Option<&'static [u64]>,
}

impl Mock {
    /// Engines whose turn `failing`, in the spelling of [`Mock::turns`], fails.
    pub fn failing(failing: &'static str) -> Self {
        Mock { failing: Some(failing), ..Mock::default() }
    }

    /// Engines whose running kernel has a device with this maximum request size.
    pub fn with_io_bytes(io_bytes: u64) -> Self {
        Mock { io_bytes: Some(io_bytes), ..Mock::default() }
    }

    /// Engines whose kernel runs flush their statistics at these accesses.
    pub fn with_flushes(flushes: &'static [u64]) -> Self {
        Mock { flushes: Some(flushes), ..Mock::default() }
    }

    /// Calls in order: each engine's name when created, `ENGINE: prepare ADVICE`, `ENGINE: run
    /// ADVICE SEED`, `ENGINE: flush as RUNS`, `ENGINE: drop ADVICE`, `ENGINE is gone`.
    pub fn asked(&self) -> Vec<String> {
        self.entries().clone()
    }

    /// The calls that are turns.
    pub fn turns(&self) -> Vec<String> {
        self.asked().into_iter().filter(|entry| entry.contains(": run ")).collect()
    }

    /// Number of turns announced, and taken.
    pub fn progressed(&self) -> (u64, u64) {
        let Turns { total, advanced } = &*self.turns;
        (total.load(Ordering::Relaxed), advanced.load(Ordering::Relaxed))
    }

    fn entries(&self) -> MutexGuard<'_, Vec<String>> {
        self.asked.lock().expect("no turn panics")
    }

    fn note(&self, entry: impl fmt::Display) {
        self.entries().push(entry.to_string());
    }

    fn engine(&self, name: &'static str) -> MockEngine {
        self.note(name);
        MockEngine { name, mock: self.clone() }
    }
}

impl Engines for Mock {
    type Model = MockEngine;
    type Host = MockEngine;
    type Boot = MockEngine;

    fn model(&self, profile: Profile) -> MockEngine {
        if Some(profile.device.io_bytes) == self.io_bytes {
            self.engine("model beside the host")
        } else {
            self.engine("model")
        }
    }

    fn host(&self, apply: bool) -> Result<MockEngine, Error> {
        Ok(self.engine(if apply { "host that may change" } else { "host" }))
    }

    fn boot(&self) -> MockEngine {
        MockEngine { name: "boot", mock: self.clone() }
    }

    fn progress(&self, total: Option<u64>) -> Box<dyn Progress> {
        self.turns.total.store(total.unwrap_or(0), Ordering::Relaxed);
        Box::new(Arc::clone(&self.turns))
    }

    fn message_sink(&self) -> fn(&str) {
        |_| {}
    }

    fn journal(&self) -> Result<(Journal, Undoing), Error> {
        Err(Error::CannotRun("there is nothing to undo".to_string()))
    }
}

/// Number of turns announced, and taken.
#[derive(Default)]
struct Turns {
    total: AtomicU64,
    advanced: AtomicU64,
}

impl Progress for Arc<Turns> {
    fn begin_at(&self, done: u64) {
        self.advanced.store(done, Ordering::Relaxed);
    }

    fn advance(&self) {
        self.advanced.fetch_add(1, Ordering::Relaxed);
    }
}

/// The advice of a job, which identifies it in these tests.
fn advice(job: &Job) -> &'static str {
    job.mappings[0].mapping.advice.name()
}

/// A mock engine.
pub struct MockEngine {
    name: &'static str,
    mock: Mock,
}

impl Drop for MockEngine {
    fn drop(&mut self) {
        if self.name.starts_with("host") {
            self.mock.note(format_args!("{} is gone", self.name));
        }
    }
}

impl Engine for MockEngine {
    type Error = Error;
    type Ready = MockReady;

    fn prepare_all(&self, jobs: &[&Job]) -> Result<Vec<MockReady>, Error> {
        let ready = |job: &&Job| {
            self.mock.note(format_args!("{}: prepare {}", self.name, advice(job)));
            MockReady { name: self.name, mock: self.mock.clone(), job: (*job).clone() }
        };
        Ok(jobs.iter().map(ready).collect())
    }
}

/// A job prepared by a mock engine.
pub struct MockReady {
    name: &'static str,
    mock: Mock,
    job: Job,
}

impl Drop for MockReady {
    fn drop(&mut self) {
        self.mock.note(format_args!("{}: drop {}", self.name, advice(&self.job)));
    }
}

impl MockReady {
    fn is_host(&self) -> bool {
        self.job.engine == EngineKind::Kernel && self.job.image.is_none()
    }
}

impl ReadyJob for MockReady {
    type Error = Error;

    fn seed(&self) -> u64 {
        self.job.seed
    }

    fn turns(&self) -> u64 {
        if self.is_host() { self.job.runs } else { 1 }
    }

    fn io_bytes(&self) -> Option<u64> {
        self.mock.io_bytes.filter(|_| self.is_host())
    }

    fn flush_as(&mut self, runs: &[Vec<u64>]) {
        self.mock.note(format_args!("{}: flush as {runs:?}", self.name));
    }

    fn take_turn(&mut self, seed: u64) -> Result<Vec<Run>, Error> {
        let turn = format!("{}: run {} {seed}", self.name, advice(&self.job));
        self.mock.note(&turn);
        if self.mock.failing == Some(turn.as_str()) {
            return Err(Error::CannotRun(format!("{turn} failed")));
        }
        // Each turn takes one second longer than the previous one.
        let turns = self.mock.turns().len() as u64;
        let counters = Counters { data_pages_read: Some(turns), ..Counters::default() };
        let elapsed_ns = Some(turns * 1_000_000_000);
        let phases = vec![PhaseRun { elapsed_ns, ..PhaseRun::default() }];
        let run = Run { seed, elapsed_ns, counters, phases, ..Run::default() };
        Ok(vec![run; if self.is_host() { 1 } else { self.job.runs as usize }])
    }

    fn into_job_runs(self, runs: Vec<Run>) -> JobRuns {
        let mut environment = Map::new();
        if let Some(at) = self.mock.flushes.filter(|_| self.job.engine == EngineKind::Kernel) {
            flushes::note(&mut environment, &vec![at.to_vec(); runs.len()]);
        }
        JobRuns { engine: self.job.engine, environment, runs }
    }
}
