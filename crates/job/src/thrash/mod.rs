//! The workload `thrash`: threads of one process under one memory cgroup, each of which maps a file
//! of its own, reads every page and unmaps it, again and again.
//!
//! It is a job by itself: [`JobSpec::validate_thrash`](crate::JobSpec::validate_thrash) makes a
//! [`Thrash`] of the same flags and job files of which others become a [`Job`](crate::Job).

mod course;
mod histogram;
mod record;
mod replay;
mod tries;
mod validate;

use filemap_core::rules::Rules;
use filemap_core::units::PageCount;

use crate::job::{EngineKind, Image, Machine};
use crate::record::{Counters, Run};

pub use course::{CauseCourse, Course, WaitCourse};
pub use histogram::Histogram;
pub use record::{Ended, ThrashRun, Wait};
pub use tries::Tries;

/// The name of the workload.
pub const THRASH: &str = "thrash";

/// Where the windows of all threads took less than a quarter of what the cgroup held, and nobody
/// wrote, next to no retry missed on a kernel: 0.2 of 100 at 6 %, against 3.3 of 100 at 25 %
/// (`data/measured-6.12-thrash.json`). Writers can change that, so what a run found counts first.
const LEAST_PRESSURE: f64 = 0.25;

/// A job of the workload `thrash` that has been validated.
#[derive(Clone, Debug, PartialEq)]
pub struct Thrash {
    /// The engine that is to run it.
    pub engine: EngineKind,
    /// The kernel that is booted for it, instead of the running one.
    pub image: Option<Image>,
    /// The kernel's rules with the patch series on top.
    pub rules: Rules,
    /// How many times it runs: 1 or more.
    pub runs: u64,
    /// Seed of when each thread begins in the model: not 0.
    pub seed: u64,
    /// Limits of the memory cgroup, readahead and architecture. No limit of the page cache is said
    /// otherwise.
    pub machine: Machine,
    /// Threads that map, read and unmap: 1 or more.
    pub threads: u64,
    /// CPUs: 1 or more. `None` is one for each thread in the model, and those that there are on a
    /// kernel.
    pub cpus: Option<u64>,
    /// Pages of each file, all of which are mapped: 1 or more.
    pub file_pages: PageCount,
    /// The files have no blocks on disk.
    pub sparse: bool,
    /// When it ends.
    pub until: Until,
    /// What happens in so many nanoseconds from the beginning is not counted.
    pub warm_up_ns: u64,
    /// The threads begin within this many nanoseconds.
    pub stagger_ns: u64,
    /// Threads of the same process that change the protection of another mapping.
    pub writers: u64,
    /// Threads that only keep a CPU busy.
    pub noise_threads: u64,
    /// Where a patched kernel counts retries, if the job says it.
    pub counters: Option<String>,
}

/// When a thrash ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// So many nanoseconds behind the warm-up: 1 or more.
    Elapsed(u64),
    /// When all threads together have made so many rounds since the beginning: 1 or more.
    Rounds(u64),
}

impl Thrash {
    /// Base page size in bytes.
    pub fn page_size(&self) -> u64 {
        self.machine.arch.page_size
    }

    /// CPUs in the model.
    pub fn model_cpus(&self) -> u64 {
        self.cpus.unwrap_or(self.threads)
    }

    /// All threads that it has.
    pub fn all_threads(&self) -> u64 {
        self.threads + self.writers + self.noise_threads
    }

    /// The same job with another seed.
    pub fn with_seed(&self, seed: u64) -> Thrash {
        Thrash { seed, ..self.clone() }
    }

    /// x of reports: what the windows of all threads take, as a share of what the cgroup holds
    /// below `memory.high`, or `memory.max` where that is the only limit; `None` without a limit.
    pub fn pressure(&self) -> Option<f64> {
        let holds = self.machine.memory_high_bytes.or(self.machine.memory_max_bytes)?;
        let window = self.machine.read_ahead.bytes(self.page_size());
        Some(self.threads as f64 * window as f64 / holds as f64)
    }

    /// What the job cannot show, as a sentence each, without its full stop. `runs` are what it and
    /// its variants came to.
    pub fn without_effect(&self, runs: &[&Run]) -> Vec<String> {
        let cannot = "so this job cannot show what retries after I/O cost";
        let Some(pressure) = self.pressure() else {
            return vec![format!(
                "there is no memory limit, {cannot}; give --memory-high or --memory-max"
            )];
        };
        let is_alike = |run: &&&Run| {
            run.thrash.as_ref().is_some_and(|thrash| thrash.pressure == Some(pressure))
        };
        let counters: Vec<&Counters> =
            runs.iter().filter(is_alike).map(|run| &run.counters).collect();
        let misses = counters
            .iter()
            .filter_map(|counters| Some((counters.retry_io_miss?, counters.retry_mmap_drop?)));
        let misses: Vec<(u64, u64)> = misses.collect();
        if misses.iter().any(|(misses, drops)| misses * 100 >= (*drops).max(1)) {
            return Vec::new();
        }
        let evicted: Vec<u64> = counters.iter().filter_map(|of| of.evicted_pages).collect();
        if !evicted.is_empty() && evicted.iter().all(|pages| *pages == 0) {
            return vec![format!(
                "all that was read stayed in memory, {cannot}; give a lower limit, or larger files"
            )];
        }
        if pressure >= LEAST_PRESSURE {
            return Vec::new();
        }
        let found = match misses.is_empty() {
            true => format!(
                "and where that is below {LEAST_PRESSURE}, hardly a page is gone when its fault \
                 begins again"
            ),
            false => {
                "and fewer than 1 of 100 faults that began again found their page gone".to_string()
            }
        };
        vec![format!(
            "x = threads x readahead / memory limit is {pressure:.2}, {found}, {cannot}; give more \
             --threads, a larger --read-ahead-kb, or a lower limit"
        )]
    }
}
