//! Cells from trials.

use filemap_job::waits::{Cause, Wait};
use serde_json::{Map, Value, json};

use super::data::{
    Judging, MIN_SEEDS, NAME, PAGE_KIB, PUBLISHED, PUBLISHED_CPUS, PUBLISHED_JOB, RetryRow,
};
use super::plan::TriedExperiment;
use super::trial::{Trial, TrialRun};
use crate::published::cell::{Cell, FITTED, NEEDS_MORE_SEEDS};
use crate::published::tolerance::Tolerance;
use crate::stats::SampleStats;

/// Counters reported for every seed of the published job.
const REPORTED_COUNTERS: [&str; 4] =
    ["retry_mmap_drop", "retry_arrival", "retry_io_miss", "throttled"];

/// A variant of the published job over all seeds.
pub struct TrialVariant<'a>(Vec<&'a (Trial, TrialRun)>);

impl<'a> TrialVariant<'a> {
    /// The variants without and with the series; `tried` has an experiment for each seed.
    pub fn variants(tried: &'a [TriedExperiment]) -> [TrialVariant<'a>; 2] {
        [0, 1].map(|at: usize| TrialVariant(tried.iter().map(|tried| &tried.both[at]).collect()))
    }

    fn runs(&self) -> impl Iterator<Item = &'a TrialRun> {
        self.0.iter().map(|(_, run)| run)
    }

    fn sample(&self, figure: impl Fn(&TrialRun) -> Option<f64>) -> Option<SampleStats> {
        SampleStats::from_sorted(self.runs().filter_map(figure).collect())
    }

    fn rounds_s(&self) -> Option<SampleStats> {
        self.sample(|run| Some(run.rounds_s()))
    }

    fn misses(&self) -> Option<SampleStats> {
        self.sample(TrialRun::miss_percent)
    }

    /// Whether it completes less than half of the rounds of `base`.
    fn stalls(&self, base: &TrialVariant) -> bool {
        let median = |variant: &TrialVariant| variant.rounds_s().map(|rounds| rounds.median);
        median(self) < median(base).map(|rounds| rounds / 2.0)
    }

    /// The cell of all seeds.
    pub fn cell(&self) -> Cell {
        let (trial, first) = self.0[0];
        let mut figures = json!({
            "seeds": self.0.len(),
            "rounds_s": self.rounds_s(),
            "misses_per_100_drops": self.misses(),
            "drops_per_round": self.sample(TrialRun::drops_per_round),
            "elapsed_ns": first.elapsed_ns,
            "ended_early": self.runs().find_map(|run| run.ended_early.as_deref()),
            "time": self.time(),
        });
        for name in REPORTED_COUNTERS {
            figures[name] = json!(self.sample(|run| json!(run)[name].as_f64()));
        }
        trial_cell(PUBLISHED_JOB, PUBLISHED_JOB, trial, figures)
    }

    /// Time of its threads by cause.
    fn time(&self) -> Value {
        let causes = || Cause::ALL.into_iter().filter(|cause| *cause != Cause::Asleep);
        let waits = |cause: Cause| {
            self.runs().flat_map(|run| &run.waits).filter(move |wait| wait.cause == cause.name())
        };
        let sum = |cause: Cause| waits(cause).map(|wait| wait.sum_ns).sum::<u64>();
        let all: u64 = causes().map(sum).sum();
        let total = |cause: Cause| {
            let most = |field: fn(&Wait) -> u64| waits(cause).map(field).max().unwrap_or(0);
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

/// Accessor of a figure in a published row.
type FigureAccessor = fn(&RetryRow) -> f64;

/// All published figures compared with the model's, at these `costs`.
pub fn published_cells(variants: &[TrialVariant; 2], costs: &[(&'static str, u64)]) -> Vec<Cell> {
    let costs = costs.iter().copied().chain([("cpus", PUBLISHED_CPUS)]);
    let assumed: Map<String, Value> =
        costs.map(|(name, value)| (name.into(), value.into())).collect();
    let of_row = |row: &'static RetryRow| {
        let variant = &variants[usize::from(row.with_series())];
        let stalls = variant.stalls(&variants[0]);
        let drops = variant.sample(TrialRun::drops_per_round);
        let misses: FigureAccessor = |row| row.miss_drop_pct;
        let rounds: FigureAccessor = |row| row.rounds_s;
        let figures = [
            ("misses", "misses of 100 drops", misses, variant.misses()),
            ("drops", "drops a round", RetryRow::drops_per_round as FigureAccessor, drops),
            ("rounds", "rounds a second", rounds, variant.rounds_s()),
        ];
        figures.map(|(name, unit, published, model)| {
            let judging = PUBLISHED.figures[name].judging(row.with_series());
            let runs = run_stats(row.with_series(), published);
            let cell = Cell {
                name: Some(row.case.clone()),
                assumed: Some(assumed.clone()),
                ..compare_cell(published(row), model.as_ref(), unit, variant)
            };
            judge_cell(cell, judging, (runs.min, runs.max), model.as_ref(), stalls)
        })
    };
    PUBLISHED.rows.iter().flat_map(of_row).collect()
}

/// Published samples of the runs without or with the series.
fn run_stats(with_series: bool, figure: impl Fn(&RetryRow) -> f64) -> SampleStats {
    let runs = PUBLISHED.rows.iter().filter(|row| row.with_series() == with_series);
    SampleStats::from_sorted(runs.map(figure).collect()).expect("there are rows of both kinds")
}

/// The cell with tolerance and verdict. A variant that `stalls` is not judged: its misses mean
/// nothing.
fn judge_cell(
    cell: Cell,
    judging: Judging,
    (least, most): (f64, f64),
    model: Option<&SampleStats>,
    stalls: bool,
) -> Cell {
    if judging == Judging::Fitted {
        return cell.with_judgement(None, FITTED);
    }
    let tolerance = Tolerance::Runs(least, most);
    let cell = Cell { tolerance: Some(tolerance.to_string()), ..cell };
    let is_enough = model.is_none_or(|model| model.samples.len() >= MIN_SEEDS);
    let holds = || !stalls && model.and_then(|model| tolerance.holds(model, least)) == Some(true);
    let holds = is_enough.then(holds);
    match judging {
        Judging::Compared => cell.with_comparison(holds, NEEDS_MORE_SEEDS),
        _ => cell.with_judgement(holds, NEEDS_MORE_SEEDS),
    }
}

/// Ratio of rounds with and without the series, against the range over pairs of published runs and
/// their overall ratio.
pub fn ratio_of_all([before, after]: &[TrialVariant; 2]) -> Cell {
    let ratios = before.runs().zip(after.runs()).filter_map(|(before, after)| ratio(before, after));
    let ratios = SampleStats::from_sorted(ratios.collect());
    let [without, with] = [false, true].map(|with| run_stats(with, |row| row.rounds_s));
    let unit = "rounds with the series for each without it";
    let cell = Cell {
        name: Some("all runs".to_string()),
        ..compare_cell(with.mean / without.mean, ratios.as_ref(), unit, after)
    };
    let runs = (with.min / without.max, with.max / without.min);
    judge_cell(cell, Judging::Judged, runs, ratios.as_ref(), false)
}

/// Ratio of rounds with and without the series.
fn ratio(before: &TrialRun, after: &TrialRun) -> Option<f64> {
    (before.rounds > 0).then(|| after.rounds_s() / before.rounds_s())
}

/// Compares a published figure with the model's median.
fn compare_cell(
    published: f64,
    model: Option<&SampleStats>,
    unit: &str,
    variant: &TrialVariant,
) -> Cell {
    let median = model.map(|model| model.median);
    let figures = json!({ "median": median, "distribution": model });
    Cell {
        unit: Some(unit.to_string()),
        published: Some(published),
        error: median.map(|median| median - published),
        error_unit: Some(unit.to_string()),
        ..trial_cell(PUBLISHED_JOB, PUBLISHED_JOB, &variant.0[0].0, figures)
    }
}

/// Cells of an experiment without and with the series.
pub fn experiment_cells(tried: &TriedExperiment) -> [Cell; 2] {
    let [(_, before), (_, after)] = &tried.both;
    tried.both.each_ref().map(|(trial, run)| {
        let mut figures = json!(run);
        figures["rounds_s"] = json!(run.rounds_s());
        figures["misses_per_100_drops"] = json!(run.miss_percent());
        figures["drops_per_round"] = json!(run.drops_per_round());
        if trial.with_series {
            figures["ratio"] = json!(ratio(before, after));
        }
        trial_cell(tried.experiment.kind, &tried.experiment.name, trial, figures)
    })
}

/// A cell with `figures` and the conditions of `trial`.
fn trial_cell(experiment: &str, name: &str, trial: &Trial, mut figures: Value) -> Cell {
    if figures.get("elapsed_ns").is_some() {
        figures["conditions"] = json!(trial);
        // Readahead of all threads as a share of memory.high.
        let pressure = (trial.threads * trial.read_ahead_pages) as f64 / trial.high_pages as f64;
        figures["conditions"]["pressure"] = pressure.into();
    }
    Cell {
        experiment: Some(experiment.to_string()),
        name: Some(name.to_string()),
        variant: Some(if trial.with_series { NAME } else { "baseline" }.to_string()),
        read_ahead_kb: Some(trial.read_ahead_pages * PAGE_KIB),
        ..Cell::new(NAME, figures)
    }
}
