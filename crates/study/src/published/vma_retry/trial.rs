//! Trials: conditions, their job in the model, and results.

use std::sync::Arc;

use filemap_core::rules::Kernel;
use filemap_core::series::Switch;
use filemap_job::program::{
    FileSpec, JobSpec, MappingSpec, OpenSpec, THRASH, ThreadPhaseSpec, ThreadSpec,
    change_protection,
};
use filemap_job::waits::Wait;
use filemap_job::{JobFlags, Run as Ran, SizeText};
use filemap_model::{Profile, trace};
use serde::Serialize;
use serde_json::{Map, Value};

use super::data::PUBLISHED_CPUS;
use crate::engine::Progress;
use crate::error::Error;
use crate::footer::Origin;
use crate::{machine_profile, parallel, provenance};

/// Newest modelled kernel that precedes the series.
const KERNEL: Kernel = Kernel::V6_18;

/// Machine profile of all trials; experiments change one cost at a time.
const MACHINE: &str = "server";

/// Cost of evicting a page in nanoseconds for each CPU that evicts concurrently, since they
/// serialize. Fitted to the published rounds per second.
const EVICT_NS_PER_CPU: u64 = 664;

/// Page size in bytes.
const PAGE_BYTES: u64 = 4096;

/// Interval in which the threads start.
const STAGGER: &str = "100ms";

/// Name of the file and mapping that all threads share.
const SHARED_NAME: &str = "all";

/// Names of reading threads, and of threads that change protections.
const READER: &str = "reader";
const WRITER: &str = "writer";

const SECOND_NS: u64 = 1_000_000_000;

/// A run of threads that each map a sparse file of their own, read every page, unmap it and repeat.
/// Serialized as the conditions of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trial {
    #[serde(skip)]
    pub with_series: bool,
    #[serde(skip)]
    pub seed: u64,
    /// Number of reading threads.
    pub threads: u64,
    pub cpus: u64,
    /// Pages of each file.
    pub file_pages: u64,
    pub read_ahead_pages: u64,
    /// `memory.high` and `memory.max`.
    #[serde(rename = "memory_high_pages")]
    pub high_pages: u64,
    #[serde(rename = "memory_max_pages")]
    pub max_pages: u64,
    /// Number of threads that change the protection of a mapping.
    pub writers: u64,
    /// Whether all threads share one VMA, the writers too.
    pub one_vma: bool,
    /// Name of a changed cost, and its percentage.
    #[serde(skip)]
    pub change: Option<(&'static str, u64)>,
    /// Virtual seconds.
    pub seconds: u64,
}

/// Result of a trial, serialized as the figures of a cell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TrialRun {
    /// Counted virtual time in nanoseconds.
    pub elapsed_ns: u64,
    /// Rounds: files mapped, read and unmapped.
    pub rounds: u64,
    /// Fault attempts that dropped their lock for I/O.
    #[serde(rename = "retry_mmap_drop")]
    pub drops: u64,
    /// Every arrival at the retry path.
    #[serde(rename = "retry_arrival")]
    pub retries: u64,
    /// Retries that found their page gone.
    #[serde(rename = "retry_io_miss")]
    pub misses: u64,
    /// Fault attempts that could not take the per-VMA lock.
    #[serde(rename = "vma_lock_refused")]
    pub refused: u64,
    /// Number of protection changes by writers.
    pub protections: u64,
    /// Number of sleeps in memory.high throttling.
    pub throttled: u64,
    #[serde(skip)]
    pub waits: Vec<Wait>,
    /// Why it ended early.
    pub ended_early: Option<String>,
}

impl TrialRun {
    /// Rounds per second.
    pub fn rounds_s(&self) -> f64 {
        self.rounds as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Misses in percent of drops; `None` if it made no progress.
    pub fn miss_percent(&self) -> Option<f64> {
        (!self.makes_no_progress()).then(|| self.misses as f64 * 100.0 / self.drops.max(1) as f64)
    }

    /// Drops per round; `None` if no round was completed.
    pub fn drops_per_round(&self) -> Option<f64> {
        (self.rounds > 0).then(|| self.drops as f64 / self.rounds as f64)
    }

    /// Whether it made no progress: it ended early, or completed no round.
    pub fn makes_no_progress(&self) -> bool {
        self.ended_early.is_some() || self.rounds == 0
    }
}

/// Runs trials; results in order.
pub type RunTrials<'a> = dyn Fn(&[Trial]) -> Result<Vec<TrialRun>, Error> + 'a;

/// Runs `trials` in parallel.
///
/// # Errors
/// If a trial cannot run.
pub fn run_in_parallel(trials: &[Trial], progress: &dyn Progress) -> Result<Vec<TrialRun>, Error> {
    parallel::map(trials.iter().collect(), |trial| {
        let run = run(trial)?;
        progress.advance();
        Ok(run)
    })
}

/// The nonzero costs by name.
///
/// # Errors
/// If the machine profile cannot be read.
pub fn costs() -> Result<Vec<(&'static str, u64)>, Error> {
    let mut profile = machine(PUBLISHED_CPUS)?;
    let named = profile.cost.named_mut().map(|(name, ns)| (name, *ns));
    Ok(named.filter(|(_, ns)| *ns > 0).collect())
}

/// Origin of trials at these `costs`.
pub fn origin(costs: &[(&'static str, u64)]) -> Origin {
    let costs: Map<String, Value> =
        costs.iter().map(|(name, ns)| ((*name).into(), (*ns).into())).collect();
    let scope =
        "classic LRU; threads that wait: base pages; no NUMA, writeback, truncation or swap";
    let mut environment: Map<String, Value> = [
        ("scope".to_string(), scope.into()),
        ("elapsed".to_string(), "predicted from assumed costs".into()),
        ("costs_ns".to_string(), costs.into()),
    ]
    .into_iter()
    .collect();
    provenance::stamp(&mut environment, "model");
    let kernel = Some(KERNEL.name().to_string());
    Origin { engine: "model".to_string(), kernel, arch: None, environment }
}

/// Profile of the trials' machine with `cpus` CPUs.
fn machine(cpus: u64) -> Result<Profile, Error> {
    let mut profile = machine_profile::load_profile(Some(MACHINE))?;
    profile.cost.evict_page_ns = EVICT_NS_PER_CPU.saturating_mul(cpus);
    // As in the guests in which the posted series was measured: nearly all remaining misses are of
    // threads that are preempted in a fault.
    profile.voluntary_preemption = true;
    Ok(profile)
}

pub fn run(trial: &Trial) -> Result<TrialRun, Error> {
    let mut profile = machine(trial.cpus)?;
    if let Some((name, percent)) = trial.change {
        let found = profile.cost.named_mut().find(|(known, _)| *known == name);
        let (_, ns) = found.expect("only costs that there are are changed");
        *ns = *ns * percent / 100;
    }
    let program = spec(trial)?.validate(None)?;
    match trace(&program, &profile, &mut ()) {
        Ok(run) => Ok(notes(trial, &run)),
        // No progress at all.
        Err(error @ filemap_model::Error::ProgramOutOfMemory { .. }) => Ok(TrialRun {
            elapsed_ns: trial.seconds * SECOND_NS,
            ended_early: Some(error.to_string()),
            ..TrialRun::default()
        }),
        Err(error) => Err(error.into()),
    }
}

/// The job of a trial.
pub fn spec(trial: &Trial) -> Result<JobSpec, Error> {
    let size = |pages: u64| Some(SizeText::from_bytes(pages * PAGE_BYTES));
    let flags = JobFlags {
        workload: Some(THRASH.to_string()),
        kernel: Some(KERNEL.name().to_string()),
        with: trial.with_series.then(|| Switch::VmaRetry.name().to_string()),
        seed: Some(trial.seed),
        threads: Some(trial.threads),
        writers: Some(trial.writers),
        cpus: Some(trial.cpus),
        file_size: size(trial.file_pages),
        sparse: Some(true),
        read_ahead_kb: Some(trial.read_ahead_pages * PAGE_BYTES / 1024),
        memory_high: size(trial.high_pages),
        memory_max: size(trial.max_pages),
        fs: Some("base-pages".to_string()),
        duration: Some(format!("{}s", trial.seconds)),
        stagger: Some(STAGGER.to_string()),
        ..JobFlags::default()
    };
    let spec = flags.thrash()?;
    Ok(if trial.one_vma { in_one_vma(trial, spec) } else { spec })
}

/// The variant with one mapping shared by all threads and protected by the writers. Each thread
/// drops its part (MADV_DONTNEED) instead of unmapping it.
fn in_one_vma(trial: &Trial, spec: JobSpec) -> JobSpec {
    let of_all =
        || ThreadPhaseSpec { mapping: Some(SHARED_NAME.to_string()), ..ThreadPhaseSpec::default() };
    let lasts = spec.thread[0].lasts.clone();
    let part_bytes = trial.file_pages * PAGE_BYTES;
    let reader = |number: u64| {
        let first = number * trial.file_pages;
        let pages = Some(Arc::new((first..first + trial.file_pages).collect()));
        let drop = ThreadPhaseSpec {
            madvise: Some("dontneed".to_string()),
            offset: Some(SizeText::from_bytes(number * part_bytes)),
            len: Some(SizeText::from_bytes(part_bytes)),
            ..of_all()
        };
        ThreadSpec {
            name: Some(format!("{READER}-{number}")),
            lasts: lasts.clone(),
            stagger: Some(STAGGER.to_string()),
            phase: vec![ThreadPhaseSpec { pages, ..of_all() }, drop],
            ..ThreadSpec::default()
        }
    };
    let writer = |number: u64| ThreadSpec {
        name: Some(format!("{WRITER}-{number}")),
        lasts: lasts.clone(),
        phase: change_protection(SHARED_NAME),
        ..ThreadSpec::default()
    };
    let file = FileSpec {
        name: SHARED_NAME.to_string(),
        size: Some(SizeText::from_bytes(trial.threads * part_bytes)),
        sparse: true,
        ..FileSpec::default()
    };
    let (name, open) = (SHARED_NAME.to_string(), SHARED_NAME.to_string());
    JobSpec {
        file: vec![file],
        open: vec![OpenSpec { name: name.clone(), file: name.clone(), direct: false }],
        mapping: vec![MappingSpec { name, open, ..MappingSpec::default() }],
        thread: (0..trial.threads).map(reader).chain((0..trial.writers).map(writer)).collect(),
        ..spec
    }
}

fn notes(trial: &Trial, run: &Ran) -> TrialRun {
    let counters = &run.counters;
    let rounds = |name: &str| -> u64 {
        let threads = run.threads.iter().filter(|thread| thread.name.starts_with(name));
        threads.filter_map(|thread| thread.counters.rounds).sum()
    };
    TrialRun {
        elapsed_ns: trial.seconds * SECOND_NS,
        rounds: rounds(READER),
        drops: counters.retry_mmap_drop.unwrap_or(0),
        retries: counters.retry_arrival.unwrap_or(0),
        misses: counters.retry_io_miss.unwrap_or(0),
        refused: counters.vma_lock_refused.unwrap_or(0),
        protections: 2 * rounds(WRITER),
        throttled: counters.throttled.unwrap_or(0),
        waits: run.waits.clone(),
        ended_early: None,
    }
}
