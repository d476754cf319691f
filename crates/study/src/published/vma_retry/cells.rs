//! What trials came to, as cells.

use filemap_job::waits::{Cause, Wait};
use serde_json::{Map, Value, json};

use super::plan::{Experiment, PUBLISHED_CPUS};
use super::trial::{Simulation, Trial, TrialRun, Trials};
use super::{LEAST_SEEDS, NAME, PAGE_KIB, PUBLISHED_JOB};
use crate::published::cell::{Cell, NOT_COMPARED};
use crate::published::data::{PUBLISHED, RetryRow};
use crate::published::tolerance::Tolerance;
use crate::stats::Sample;

/// One variant of the published job over all seeds.
pub struct Variant<'a> {
    /// The trial of the first seed.
    trial: &'a Trial,
    runs: Vec<&'a TrialRun>,
}

impl<'a> Variant<'a> {
    /// The variants without the series and with it; `trials` has a pair for each seed.
    pub fn both(trials: &'a [[Trial; 2]], known: &'a Trials) -> [Variant<'a>; 2] {
        [0, 1].map(|of: usize| Variant {
            trial: &trials[0][of],
            runs: trials.iter().map(|pair| known.of(&pair[of])).collect(),
        })
    }

    fn sample(&self, of: impl Fn(&TrialRun) -> Option<f64>) -> Option<Sample> {
        Sample::of(self.runs.iter().filter_map(|run| of(run)).collect())
    }

    fn rounds_s(&self) -> Option<f64> {
        self.sample(|run| Some(run.rounds_s())).map(|rounds| rounds.median)
    }

    /// All of it.
    pub fn cell(&self) -> Cell {
        let counted = |of: fn(&TrialRun) -> u64| self.sample(|run| Some(of(run) as f64));
        let figures = json!({
            "seeds": self.runs.len(),
            "rounds_s": self.sample(|run| Some(run.rounds_s())),
            "misses_per_100_drops": self.sample(|run| Some(run.miss_percent())),
            "drops_per_round": self.sample(TrialRun::drops_per_round),
            "retry_mmap_drop": counted(|run| run.drops),
            "retry_arrival": counted(|run| run.retries),
            "retry_io_miss": counted(|run| run.misses),
            "throttled": counted(|run| run.throttled),
            "elapsed_ns": self.runs[0].elapsed_ns,
            "ended_early": self.runs.iter().find_map(|run| run.ended_early.as_deref()),
            "conditions": conditions(self.trial),
            "time": self.time(),
        });
        of_trial(PUBLISHED_JOB, PUBLISHED_JOB, self.trial, figures)
    }

    /// Where the time of its threads went, by cause.
    fn time(&self) -> Value {
        let causes = || Cause::ALL.into_iter().filter(|cause| *cause != Cause::Asleep);
        let waits = |cause: Cause| {
            let all = self.runs.iter().flat_map(|run| &run.waits);
            all.filter(move |wait| wait.cause == cause.name())
        };
        let sum = |cause: Cause| waits(cause).map(|wait| wait.sum_ns).sum::<u64>();
        let all: u64 = causes().map(sum).sum();
        let total = |cause: Cause| {
            let most = |of: fn(&Wait) -> u64| waits(cause).map(of).max().unwrap_or(0);
            json!({
                "percent": sum(cause) as f64 * 100.0 / all.max(1) as f64,
                "p50_ns": most(|wait| wait.p50_ns),
                "p99_ns": most(|wait| wait.p99_ns),
                "max_ns": most(|wait| wait.max_ns),
            })
        };
        causes().map(|cause| (cause.name().to_string(), total(cause))).collect()
    }
}

/// Every published figure beside the model's, at the costs of `simulation`.
pub fn beside(variants: &[Variant; 2], read_ahead_kb: u64, simulation: &Simulation) -> Vec<Cell> {
    let costs = simulation.costs.iter().copied().chain([("cpus", PUBLISHED_CPUS)]);
    let assumed: Map<String, Value> = costs.map(|(name, of)| (name.into(), of.into())).collect();
    let of_row = |row: &'static RetryRow| {
        let variant = &variants[usize::from(row.with_series())];
        // Its misses then say nothing.
        let stalls = variant.rounds_s() < variants[0].rounds_s().map(|rounds| rounds / 2.0);
        let misses = variant.sample(|run| Some(run.miss_percent()));
        let rounds = variant.sample(|run| Some(run.rounds_s()));
        let figures = [
            ("misses", "misses of 100 drops", row.miss_drop_pct, misses),
            (
                "drops",
                "drops a round",
                row.drops_per_round(),
                variant.sample(TrialRun::drops_per_round),
            ),
            ("rounds", "rounds a second", row.rounds_s, rounds),
        ];
        figures.map(|(what, unit, published, model)| {
            let tolerance = tolerance(row, what, model.as_ref());
            let holds = |tolerance: Tolerance| {
                let holds = model.as_ref().and_then(|model| tolerance.holds(model, published));
                !stalls && holds == Some(true)
            };
            let cell = Cell {
                name: Some(row.case.clone()),
                assumed: Some(assumed.clone()),
                tolerance: Some(tolerance.map_or("none".to_string(), |own| own.to_string())),
                ..against(published, model.as_ref(), unit)
            };
            let variant = if row.with_series() { NAME } else { "baseline" };
            let cell = of_variant(cell, variant, read_ahead_kb);
            cell.judged(tolerance.map(holds), NOT_COMPARED)
        })
    };
    PUBLISHED.vma_retry.rows.iter().flat_map(of_row).collect()
}

/// When the median of `model` holds; `None` where nothing is judged.
fn tolerance(row: &RetryRow, what: &str, model: Option<&Sample>) -> Option<Tolerance> {
    let bounds = &PUBLISHED.vma_retry.tolerance[what];
    let bounds = if row.with_series() { bounds.with } else { bounds.without };
    let is_enough = model.is_none_or(|model| model.samples.len() >= LEAST_SEEDS);
    bounds.filter(|_| is_enough).map(|(low, high)| Tolerance::Between(low, high))
}

/// The least and the most of the published ratios of throughput beside the model's.
pub fn ratios([before, after]: &[Variant; 2], read_ahead_kb: u64) -> [Cell; 2] {
    let pairs = before.runs.iter().zip(&after.runs).filter(|(before, _)| before.rounds > 0);
    let ratios = pairs.map(|(before, after)| after.rounds_s() / before.rounds_s());
    let ratios = Sample::of(ratios.collect());
    let (least, most) = published_ratios();
    [("least published ratio", least), ("largest published ratio", most)].map(
        |(name, published)| {
            let unit = "rounds with the series for each without it";
            let name = Some(name.to_string());
            let cell = Cell { name, ..against(published, ratios.as_ref(), unit) };
            of_variant(cell, NAME, read_ahead_kb).judged(None, NOT_COMPARED)
        },
    )
}

/// The least and the most of what the series did to the rounds of a published baseline.
pub fn published_ratios() -> (f64, f64) {
    let rows = || PUBLISHED.vma_retry.rows.iter();
    let before = || rows().filter(|row| !row.with_series()).map(|row| row.rounds_s);
    let after = || rows().filter(|row| row.with_series()).map(|row| row.rounds_s);
    let least = after().fold(f64::MAX, f64::min) / before().fold(0.0, f64::max);
    let most = after().fold(0.0, f64::max) / before().fold(f64::MAX, f64::min);
    (least, most)
}

/// A published figure beside the median of the model's.
fn against(published: f64, model: Option<&Sample>, unit: &str) -> Cell {
    let median = model.map(|model| model.median);
    Cell {
        unit: Some(unit.to_string()),
        published: Some(published),
        error: median.map(|median| median - published),
        error_unit: Some(unit.to_string()),
        ..Cell::new(NAME, json!({ "median": median, "distribution": model }))
    }
}

fn of_variant(cell: Cell, variant: &str, read_ahead_kb: u64) -> Cell {
    Cell {
        experiment: Some(PUBLISHED_JOB.to_string()),
        variant: Some(variant.to_string()),
        read_ahead_kb: Some(read_ahead_kb),
        ..cell
    }
}

/// An experiment, without the series and with it.
pub fn tried(experiment: &Experiment, known: &Trials) -> Vec<Cell> {
    let cell = |trial: &Trial| {
        let run = known.of(trial);
        let figures = json!({
            "conditions": conditions(trial),
            "rounds_s": run.rounds_s(),
            "misses_per_100_drops": run.miss_percent(),
            "drops_per_round": run.drops_per_round(),
            "retry_mmap_drop": run.drops,
            "retry_arrival": run.retries,
            "retry_io_miss": run.misses,
            "vma_lock_refused": run.refused,
            "protections": run.protections,
            "throttled": run.throttled,
            "elapsed_ns": run.elapsed_ns,
            "ended_early": run.ended_early,
        });
        of_trial(experiment.kind, &experiment.name, trial, figures)
    };
    experiment.trials.iter().map(cell).collect()
}

fn of_trial(experiment: &str, name: &str, trial: &Trial, figures: Value) -> Cell {
    Cell {
        experiment: Some(experiment.to_string()),
        name: Some(name.to_string()),
        variant: Some(trial.variant().to_string()),
        read_ahead_kb: Some(trial.read_ahead_pages * PAGE_KIB),
        ..Cell::new(NAME, figures)
    }
}

fn conditions(trial: &Trial) -> Value {
    json!({
        "threads": trial.threads,
        "cpus": trial.cpus,
        "file_pages": trial.file_pages,
        "read_ahead_pages": trial.read_ahead_pages,
        "memory_high_pages": trial.high_pages,
        "memory_max_pages": trial.max_pages,
        "pressure": trial.pressure(),
        "writers": trial.writers,
        "one_vma": trial.one_vma,
        "seconds": trial.seconds,
    })
}
