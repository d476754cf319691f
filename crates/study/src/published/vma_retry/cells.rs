//! What trials came to, as cells.

use filemap_job::waits::{Cause, Wait};
use serde_json::{Map, Value, json};

use super::data::{
    LEAST_SEEDS, NAME, PAGE_KIB, PUBLISHED, PUBLISHED_CPUS, PUBLISHED_JOB, RetryRow,
};
use super::plan::Tried;
use super::trial::{Trial, TrialRun};
use crate::published::cell::{Cell, NOT_COMPARED};
use crate::published::tolerance::Tolerance;
use crate::stats::Sample;

/// What is counted of every seed of the published job.
const COUNTED: [&str; 4] = ["retry_mmap_drop", "retry_arrival", "retry_io_miss", "throttled"];

/// One variant of the published job over all seeds.
pub struct Variant<'a>(Vec<&'a (Trial, TrialRun)>);

impl<'a> Variant<'a> {
    /// The variants without the series and with it; `tried` has an experiment for each seed.
    pub fn both(tried: &'a [Tried]) -> [Variant<'a>; 2] {
        [0, 1].map(|of: usize| Variant(tried.iter().map(|tried| &tried.both[of]).collect()))
    }

    fn runs(&self) -> impl Iterator<Item = &'a TrialRun> {
        self.0.iter().map(|(_, run)| run)
    }

    fn sample(&self, of: impl Fn(&TrialRun) -> Option<f64>) -> Option<Sample> {
        Sample::of(self.runs().filter_map(of).collect())
    }

    fn rounds_s(&self) -> Option<Sample> {
        self.sample(|run| Some(run.rounds_s()))
    }

    fn misses(&self) -> Option<Sample> {
        self.sample(TrialRun::miss_percent)
    }

    /// All of it.
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
        for name in COUNTED {
            figures[name] = json!(self.sample(|run| json!(run)[name].as_f64()));
        }
        of_trial(PUBLISHED_JOB, PUBLISHED_JOB, trial, figures)
    }

    /// Where the time of its threads went, by cause.
    fn time(&self) -> Value {
        let causes = || Cause::ALL.into_iter().filter(|cause| *cause != Cause::Asleep);
        let waits = |cause: Cause| {
            self.runs().flat_map(|run| &run.waits).filter(move |wait| wait.cause == cause.name())
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

/// Every published figure beside the model's, at these `costs`.
pub fn beside(variants: &[Variant; 2], costs: &[(&'static str, u64)]) -> Vec<Cell> {
    let costs = costs.iter().copied().chain([("cpus", PUBLISHED_CPUS)]);
    let assumed: Map<String, Value> = costs.map(|(name, of)| (name.into(), of.into())).collect();
    let median = |variant: &Variant| variant.rounds_s().map(|rounds| rounds.median);
    let of_row = |row: &'static RetryRow| {
        let variant = &variants[usize::from(row.with_series())];
        // Its misses then say nothing.
        let stalls = median(variant) < median(&variants[0]).map(|rounds| rounds / 2.0);
        let drops = variant.sample(TrialRun::drops_per_round);
        let figures = [
            ("misses", "misses of 100 drops", row.miss_drop_pct, variant.misses()),
            ("drops", "drops a round", row.drops_per_round(), drops),
            ("rounds", "rounds a second", row.rounds_s, variant.rounds_s()),
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
                ..against(published, model.as_ref(), unit, variant)
            };
            cell.judged(tolerance.map(holds), NOT_COMPARED)
        })
    };
    PUBLISHED.rows.iter().flat_map(of_row).collect()
}

/// When the median of `model` holds; `None` where nothing is judged.
fn tolerance(row: &RetryRow, what: &str, model: Option<&Sample>) -> Option<Tolerance> {
    let bounds = &PUBLISHED.tolerance[what];
    let bounds = if row.with_series() { bounds.with } else { bounds.without };
    let is_enough = model.is_none_or(|model| model.samples.len() >= LEAST_SEEDS);
    bounds.filter(|_| is_enough).map(|(low, high)| Tolerance::Between(low, high))
}

/// The least and the most of the published ratios of throughput beside the model's.
pub fn ratios([before, after]: &[Variant; 2]) -> [Cell; 2] {
    let ratios = before.runs().zip(after.runs()).filter_map(|(before, after)| ratio(before, after));
    let ratios = Sample::of(ratios.collect());
    let rounds = |with: bool| {
        let rows = PUBLISHED.rows.iter().filter(move |row| row.with_series() == with);
        Sample::of(rows.map(|row| row.rounds_s).collect()).expect("there are rows of both kinds")
    };
    let (without, with) = (rounds(false), rounds(true));
    let published = [
        ("least published ratio", with.min / without.max),
        ("largest published ratio", with.max / without.min),
    ];
    published.map(|(name, published)| {
        let unit = "rounds with the series for each without it";
        let name = Some(name.to_string());
        Cell { name, ..against(published, ratios.as_ref(), unit, after) }.judged(None, NOT_COMPARED)
    })
}

/// Rounds with the series for each without it.
fn ratio(before: &TrialRun, after: &TrialRun) -> Option<f64> {
    (before.rounds > 0).then(|| after.rounds_s() / before.rounds_s())
}

/// A published figure beside the median of the model's.
fn against(published: f64, model: Option<&Sample>, unit: &str, variant: &Variant) -> Cell {
    let median = model.map(|model| model.median);
    let figures = json!({ "median": median, "distribution": model });
    Cell {
        unit: Some(unit.to_string()),
        published: Some(published),
        error: median.map(|median| median - published),
        error_unit: Some(unit.to_string()),
        ..of_trial(PUBLISHED_JOB, PUBLISHED_JOB, &variant.0[0].0, figures)
    }
}

/// An experiment, without the series and with it.
pub fn tried(tried: &Tried) -> [Cell; 2] {
    let [(_, before), (_, after)] = &tried.both;
    tried.both.each_ref().map(|(trial, run)| {
        let mut figures = json!(run);
        figures["rounds_s"] = json!(run.rounds_s());
        figures["misses_per_100_drops"] = json!(run.miss_percent());
        figures["drops_per_round"] = json!(run.drops_per_round());
        if trial.with_series {
            figures["ratio"] = json!(ratio(before, after));
        }
        of_trial(tried.of.kind, &tried.of.name, trial, figures)
    })
}

/// A cell with `figures`, which stand beside the conditions of `trial` if they are its own.
fn of_trial(experiment: &str, name: &str, trial: &Trial, mut figures: Value) -> Cell {
    if figures.get("elapsed_ns").is_some() {
        figures["conditions"] = json!(trial);
        // What all threads read ahead, as a share of what the cgroup holds.
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
