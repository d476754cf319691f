//! Runs of threads that wait: what is asked for, how it is run in the model, and what came out.

use std::sync::Arc;

use filemap_core::rules::Kernel;
use filemap_core::series::Switch;
use filemap_job::program::{
    FileSpec, MappingSpec, OpenSpec, ProgramSpec, THRASH, ThreadPhaseSpec, ThreadSpec,
    change_protection,
};
use filemap_job::waits::Wait;
use filemap_job::{JobSpec, Run as Ran, SizeText};
use filemap_model::{Profile, trace};
use serde::Serialize;
use serde_json::{Map, Value};

use super::data::PUBLISHED_CPUS;
use crate::engine::Progress;
use crate::error::Error;
use crate::footer::Origin;
use crate::{machine_profile, parallel, provenance};

/// The newest modelled kernel that the series was not published before.
const KERNEL: Kernel = Kernel::V6_18;

/// The machine of all trials, whose costs are changed one at a time.
const MACHINE: &str = "server";

/// What it costs to evict a page, in nanoseconds for each CPU that does so at the same time: they
/// wait for each other. Chosen so that about as many rounds a second come out as were published.
const EVICT_NS_PER_CPU: u64 = 664;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Time in which the threads begin.
const STAGGER: &str = "100ms";

/// What the file and the mapping are called that all threads share.
const ALL: &str = "all";

/// What threads are called that read, and those that change protections.
const READER: &str = "reader";
const WRITER: &str = "writer";

const SECOND_NS: u64 = 1_000_000_000;

/// One run of threads, each of which maps a sparse file of its own, reads every page, unmaps it,
/// and begins again. It is written as the conditions of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trial {
    #[serde(skip)]
    pub with_series: bool,
    #[serde(skip)]
    pub seed: u64,
    /// Threads that read.
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
    /// Threads that change the protection of a mapping.
    pub writers: u64,
    /// All files lie in one VMA, to which the writers write too.
    pub one_vma: bool,
    /// The cost of this name is at so many percent.
    #[serde(skip)]
    pub change: Option<(&'static str, u64)>,
    /// Virtual seconds.
    pub seconds: u64,
}

/// What a trial came to, as the figures of a cell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TrialRun {
    /// Virtual nanoseconds that were counted.
    pub elapsed_ns: u64,
    /// Files mapped, read and unmapped.
    pub rounds: u64,
    /// Tries that dropped their lock for I/O.
    #[serde(rename = "retry_mmap_drop")]
    pub drops: u64,
    /// Every arrival at the retry path.
    #[serde(rename = "retry_arrival")]
    pub retries: u64,
    /// Retries that found their page gone.
    #[serde(rename = "retry_io_miss")]
    pub misses: u64,
    /// Tries that could not have the lock of their VMA.
    #[serde(rename = "vma_lock_refused")]
    pub refused: u64,
    /// Times that a writer changed the protection of its mapping.
    pub protections: u64,
    /// Times that a thread slept as it owed pages.
    pub throttled: u64,
    #[serde(skip)]
    pub waits: Vec<Wait>,
    /// Why it ended before its time.
    pub ended_early: Option<String>,
}

impl TrialRun {
    /// Rounds a second.
    pub fn rounds_s(&self) -> f64 {
        self.rounds as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Misses of 100 drops; `None` where nothing came of it.
    pub fn miss_percent(&self) -> Option<f64> {
        (!self.jams()).then(|| self.misses as f64 * 100.0 / self.drops.max(1) as f64)
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

/// Runs trials: what came of each, in their order.
pub type Run<'a> = dyn Fn(&[Trial]) -> Result<Vec<TrialRun>, Error> + 'a;

/// Runs `trials` beside each other.
///
/// # Errors
/// When a trial cannot be run.
pub fn beside(trials: &[Trial], progress: &dyn Progress) -> Result<Vec<TrialRun>, Error> {
    parallel::map(trials.iter().collect(), |trial| {
        let run = run(trial)?;
        progress.advance();
        Ok(run)
    })
}

/// The costs that are not 0, by name.
///
/// # Errors
/// A machine profile that is not to be had.
pub fn costs() -> Result<Vec<(&'static str, u64)>, Error> {
    let mut profile = machine(PUBLISHED_CPUS)?;
    let named = profile.cost.named().map(|(name, ns)| (name, *ns));
    Ok(named.filter(|(_, ns)| *ns > 0).collect())
}

/// Where trials at these `costs` run.
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

/// The machine of trials with so many CPUs.
fn machine(cpus: u64) -> Result<Profile, Error> {
    let mut profile = machine_profile::named(Some(MACHINE))?;
    profile.cost.evict_page_ns = EVICT_NS_PER_CPU.saturating_mul(cpus);
    // As in the guests in which the series was measured as posted: nearly all misses that it leaves
    // are of threads that lose their CPU in a fault.
    profile.voluntary_preemption = true;
    Ok(profile)
}

pub fn run(trial: &Trial) -> Result<TrialRun, Error> {
    let mut profile = machine(trial.cpus)?;
    if let Some((name, percent)) = trial.change {
        let found = profile.cost.named().find(|(known, _)| *known == name);
        let (_, ns) = found.expect("only costs that there are are changed");
        *ns = *ns * percent / 100;
    }
    let program = spec(trial)?.validate(None)?;
    match trace(&program, &profile, &mut ()) {
        Ok(run) => Ok(told(trial, &run)),
        // It jams: nothing was completed.
        Err(error @ filemap_model::Error::ProgramOutOfMemory { .. }) => Ok(TrialRun {
            elapsed_ns: trial.seconds * SECOND_NS,
            ended_early: Some(error.to_string()),
            ..TrialRun::default()
        }),
        Err(error) => Err(error.into()),
    }
}

/// The program of a trial.
pub fn spec(trial: &Trial) -> Result<ProgramSpec, Error> {
    let size = |pages: u64| Some(SizeText::of(pages * PAGE));
    let flags = JobSpec {
        workload: Some(THRASH.to_string()),
        kernel: Some(KERNEL.name().to_string()),
        with: trial.with_series.then(|| Switch::VmaRetry.name().to_string()),
        seed: Some(trial.seed),
        threads: Some(trial.threads),
        writers: Some(trial.writers),
        cpus: Some(trial.cpus),
        file_size: size(trial.file_pages),
        sparse: Some(true),
        read_ahead_kb: Some(trial.read_ahead_pages * PAGE / 1024),
        memory_high: size(trial.high_pages),
        memory_max: size(trial.max_pages),
        fs: Some("base-pages".to_string()),
        duration: Some(format!("{}s", trial.seconds)),
        stagger: Some(STAGGER.to_string()),
        ..JobSpec::default()
    };
    let spec = flags.thrash()?;
    Ok(if trial.one_vma { in_one_vma(trial, spec) } else { spec })
}

/// The same where all threads read parts of one mapping, which the writers write to. Each drops its
/// part from the mapping instead of unmapping it.
fn in_one_vma(trial: &Trial, spec: ProgramSpec) -> ProgramSpec {
    let of_all =
        || ThreadPhaseSpec { mapping: Some(ALL.to_string()), ..ThreadPhaseSpec::default() };
    let lasts = spec.thread[0].lasts.clone();
    let part_bytes = trial.file_pages * PAGE;
    let reader = |number: u64| {
        let first = number * trial.file_pages;
        let pages = Some(Arc::new((first..first + trial.file_pages).collect()));
        let drop = ThreadPhaseSpec {
            madvise: Some("dontneed".to_string()),
            offset: Some(SizeText::of(number * part_bytes)),
            len: Some(SizeText::of(part_bytes)),
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
        phase: change_protection(ALL),
        ..ThreadSpec::default()
    };
    let file = FileSpec {
        name: ALL.to_string(),
        size: Some(SizeText::of(trial.threads * part_bytes)),
        sparse: true,
        ..FileSpec::default()
    };
    let (name, open) = (ALL.to_string(), ALL.to_string());
    ProgramSpec {
        file: vec![file],
        open: vec![OpenSpec { name: name.clone(), file: name.clone(), direct: false }],
        mapping: vec![MappingSpec { name, open, ..MappingSpec::default() }],
        thread: (0..trial.threads).map(reader).chain((0..trial.writers).map(writer)).collect(),
        ..spec
    }
}

fn told(trial: &Trial, run: &Ran) -> TrialRun {
    let counters = &run.counters;
    let rounds = |of: &str| -> u64 {
        let threads = run.threads.iter().filter(|thread| thread.name.starts_with(of));
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
