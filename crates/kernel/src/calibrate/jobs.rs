//! Costs measured by running jobs: calls under `mmap_lock`, reclaim, and wake-ups.

use filemap_job::Run;
use filemap_job::program::Job;

use crate::engine::{HostKernel, PreparedJob};
use crate::{Error, page_size};

/// A prepared program of eight phases. Phases two to seven make calls on a mapping without entries
/// and on one with all of them.
#[derive(Debug)]
pub struct CallBench {
    prepared: PreparedJob,
    rounds: f64,
    pages: f64,
}

/// Nanoseconds per call, averaged over the rounds of a run.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct CallSample {
    pub call: f64,
    /// A page-table entry removed by munmap.
    pub entry: f64,
    /// A page-table entry changed by mprotect.
    pub protect: f64,
    /// A fork and the exit of the child.
    pub fork: f64,
}

impl CallBench {
    /// Prepares `program`, whose thread repeats its phases `rounds` times.
    ///
    /// # Errors
    /// The program cannot be run here.
    pub fn prepare(kernel: &HostKernel, program: &Job, rounds: f64) -> Result<CallBench, Error> {
        let pages = program.mappings[0].mapping.pages.0 as f64;
        Ok(CallBench { prepared: kernel.prepare(program)?, rounds, pages })
    }

    /// Runs it once.
    ///
    /// # Errors
    /// The program cannot be run.
    pub fn sample(&mut self) -> Result<CallSample, Error> {
        let run: Run = self.prepared.run()?;
        let ns = |phase: usize| run.phases[phase].elapsed_ns.unwrap_or(0) as f64 / self.rounds;
        let call = ns(2).midpoint(ns(3));
        let each = |ns: f64| ((ns - call) / self.pages).max(0.0);
        let (entry, protect) = (each(ns(7)), each(ns(4).midpoint(ns(5))));
        Ok(CallSample { call, entry, protect, fork: ns(6) })
    }
}

/// Size of the file to read, which is one hole.
pub const HOLE_BYTES: u64 = 256 << 20;

/// Memory limit for the second read.
pub const LIMIT_BYTES: u64 = 64 << 20;

/// A file read from beginning to end, with memory for all of it and for a part.
#[derive(Debug)]
pub struct ReclaimBench {
    free: PreparedJob,
    /// The same job under a memory limit, or why no limit can be set here.
    limited: Result<PreparedJob, String>,
}

/// Nanoseconds and faults per page.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct ReclaimSample {
    pub free: f64,
    pub faults: f64,
    pub limited: Option<f64>,
}

impl ReclaimSample {
    /// Additional cost of a page that evicts another one: all but the first ones, which fit.
    pub fn evict(&self) -> f64 {
        let evicting = (HOLE_BYTES - LIMIT_BYTES) as f64 / HOLE_BYTES as f64;
        self.limited.map_or(0.0, |limited| (limited - self.free).max(0.0) / evicting)
    }
}

impl ReclaimBench {
    /// Prepares jobs that read a hole of [`HOLE_BYTES`]: `free` with memory for all of it,
    /// `limited` with [`LIMIT_BYTES`].
    ///
    /// # Errors
    /// A job cannot be run, except when only the limit cannot be set here.
    pub fn prepare(kernel: &HostKernel, free: &Job, limited: &Job) -> Result<ReclaimBench, Error> {
        let free = kernel.prepare(free)?;
        let limited = match kernel.prepare(limited) {
            Ok(limited) => Ok(limited),
            Err(error) if error.cannot_run_here() => Err(error.to_string()),
            Err(error) => return Err(error),
        };
        Ok(ReclaimBench { free, limited })
    }

    /// Reads it once in both ways.
    ///
    /// # Errors
    /// A job cannot be run.
    pub fn sample(&mut self) -> Result<ReclaimSample, Error> {
        let free = self.free.run()?;
        let limited = self.limited.as_mut().ok().map(PreparedJob::run).transpose()?;
        let faults =
            free.counters.minor_faults.unwrap_or(0) + free.counters.major_faults.unwrap_or(0);
        Ok(ReclaimSample {
            free: page_ns(&free),
            faults: faults as f64 / pages(),
            limited: limited.as_ref().map(page_ns),
        })
    }

    /// Why there is no measurement under a limit, if so.
    pub fn unlimited(&self) -> Option<&str> {
        self.limited.as_ref().err().map(String::as_str)
    }
}

fn page_ns(run: &Run) -> f64 {
    run.phases[0].elapsed_ns.unwrap_or(0) as f64 / pages()
}

fn pages() -> f64 {
    (HOLE_BYTES / page_size()) as f64
}

/// A program prepared to run on one CPU and on all CPUs.
#[derive(Debug)]
pub struct WakeBench {
    on_one: PreparedJob,
    on_all: PreparedJob,
    rounds: f64,
}

/// Nanoseconds between two wake-ups, averaged over a run.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct WakeSample {
    pub on_one: f64,
    pub on_all: f64,
}

impl WakeBench {
    /// Prepares a program whose threads repeat their phases `rounds` times.
    ///
    /// # Errors
    /// The program cannot be run here.
    pub fn prepare(
        kernel: &HostKernel,
        on_one: &Job,
        on_all: &Job,
        rounds: f64,
    ) -> Result<WakeBench, Error> {
        let (on_one, on_all) = (kernel.prepare(on_one)?, kernel.prepare(on_all)?);
        Ok(WakeBench { on_one, on_all, rounds })
    }

    /// Runs both once.
    ///
    /// # Errors
    /// A program cannot be run.
    pub fn sample(&mut self) -> Result<WakeSample, Error> {
        let rounds = self.rounds;
        let wake_ns = |prepared: &mut PreparedJob| -> Result<f64, Error> {
            Ok(prepared.run()?.elapsed_ns.unwrap_or(0) as f64 / rounds)
        };
        Ok(WakeSample { on_one: wake_ns(&mut self.on_one)?, on_all: wake_ns(&mut self.on_all)? })
    }
}
