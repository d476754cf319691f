//! Figures over seeds, and what is published beside them.

use serde_json::{Value, json};

use super::trial::{Trial, TrialRun, Trials};
use crate::published::data::{PUBLISHED, RetryRow};
use crate::stats::Sample;

/// Between which percentages misses of 100 drops lie without the series.
const MISSES: (f64, f64) = (35.0, 55.0);

/// Below which they lie with it.
const MISSES_WITH_SERIES: f64 = 3.0;

/// Between which drops a round lie without the series.
const DROPS: (f64, f64) = (35.0, 50.0);

/// Between which rounds a second lie without the series, and with it: within a factor of 1.5 of the
/// least and the most that were published.
const ROUNDS_S: (f64, f64) = (25.0, 59.0);
const ROUNDS_S_WITH_SERIES: (f64, f64) = (40.0, 136.0);

/// Fewer seeds decide nothing: runs of the job differ.
pub(super) const LEAST_SEEDS: usize = 5;

/// One variant of the published job over all seeds.
pub(super) struct Variant<'a> {
    /// The trial of the first seed.
    pub trial: Trial,
    pub runs: Vec<&'a TrialRun>,
}

/// VariantPair variants.
pub(super) struct VariantPair<'a> {
    pub variants: [Variant<'a>; 2],
}

impl<'a> VariantPair<'a> {
    /// What `trials`, a pair for each seed, came to.
    pub(super) fn new(trials: &[[Trial; 2]], known: &'a Trials) -> VariantPair<'a> {
        let variant = |of: usize| Variant {
            trial: trials[0][of].clone(),
            runs: trials.iter().map(|pair| known.of(&pair[of])).collect(),
        };
        VariantPair { variants: [variant(0), variant(1)] }
    }

    /// The variant of a published row.
    pub(super) fn variant(&self, row: &RetryRow) -> &Variant<'a> {
        &self.variants[usize::from(row.with_series())]
    }

    /// Whether the variant of a published row completes fewer than half as many rounds as the
    /// baseline.
    fn stalls(&self, row: &RetryRow) -> bool {
        let rounds_s = |variant: &Variant| variant.sample(TrialRun::rounds_s).median;
        rounds_s(self.variant(row)) < rounds_s(&self.variants[0]) / 2.0
    }

    /// Rounds with the series for each round without it, seed by seed.
    pub(super) fn ratios(&self) -> Option<Sample> {
        let [before, after] = &self.variants;
        let pairs = before.runs.iter().zip(&after.runs);
        let ratios = pairs.filter(|(before, _)| before.rounds > 0);
        Sample::of(ratios.map(|(before, after)| after.rounds_s() / before.rounds_s()).collect())
    }
}

impl Variant<'_> {
    pub(super) fn sample(&self, of: impl Fn(&TrialRun) -> f64) -> Sample {
        Sample::of(self.runs.iter().map(|run| of(run)).collect()).expect("there is a seed")
    }

    /// Drops a round, of the seeds that completed one.
    pub(super) fn drops_per_round(&self) -> Option<Sample> {
        Sample::of(self.runs.iter().filter_map(|run| run.drops_per_round()).collect())
    }

    /// Why the first seed that ended early did.
    pub(super) fn ended_early(&self) -> Option<&str> {
        self.runs.iter().find_map(|run| run.ended_early.as_deref())
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "seeds": self.runs.len(),
            "rounds_s": self.sample(TrialRun::rounds_s),
            "misses_per_100_drops": self.sample(TrialRun::miss_percent),
            "drops_per_round": self.drops_per_round(),
            "retry_mmap_drop": self.sample(|run| run.drops as f64),
            "retry_arrival": self.sample(|run| run.retries as f64),
            "retry_io_miss": self.sample(|run| run.misses as f64),
            "throttled": self.sample(|run| run.throttled as f64),
            "elapsed_ns": self.runs[0].elapsed_ns,
            "ended_early": self.ended_early(),
        })
    }
}

/// Beside which published figure the model's is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Misses,
    DropsPerRound,
    RoundsS,
}

/// A published figure with the model's.
pub(super) struct Beside {
    pub row: &'static RetryRow,
    pub what: What,
    pub published: f64,
    /// The model's over seeds; none where nothing was completed.
    pub model: Option<Sample>,
    /// The model's job hardly goes on: it completes fewer than half as many rounds as without the
    /// series. Its misses then say nothing.
    pub stalls: bool,
}

impl Beside {
    /// Every published figure, row by row.
    pub(super) fn all(pair: &VariantPair) -> Vec<Beside> {
        let of_row = |row: &'static RetryRow| {
            let variant = pair.variant(row);
            let stalls = pair.stalls(row);
            let figure = |what, published, model| Beside { row, what, published, model, stalls };
            let misses = Some(variant.sample(TrialRun::miss_percent));
            [
                figure(What::Misses, row.miss_drop_pct, misses),
                figure(What::DropsPerRound, row.drops_per_round(), variant.drops_per_round()),
                figure(What::RoundsS, row.rounds_s, Some(variant.sample(TrialRun::rounds_s))),
            ]
        };
        PUBLISHED.vma_retry.rows.iter().flat_map(of_row).collect()
    }

    pub(super) fn unit(&self) -> &'static str {
        match self.what {
            What::Misses => "misses of 100 drops",
            What::DropsPerRound => "drops a round",
            What::RoundsS => "rounds a second",
        }
    }

    /// Between which figures the median has to lie; `None` where nothing is judged.
    pub(super) fn bounds(&self) -> Option<(f64, f64)> {
        if self.model.as_ref().is_some_and(|model| model.samples.len() < LEAST_SEEDS) {
            return None;
        }
        match (self.what, self.row.with_series()) {
            (What::Misses, false) => Some(MISSES),
            (What::Misses, true) => Some((0.0, MISSES_WITH_SERIES)),
            (What::DropsPerRound, false) => Some(DROPS),
            (What::RoundsS, false) => Some(ROUNDS_S),
            (What::RoundsS, true) => Some(ROUNDS_S_WITH_SERIES),
            (What::DropsPerRound, true) => None,
        }
    }

    /// Whether the model's median holds; `None` where nothing is judged.
    pub(super) fn ok(&self) -> Option<bool> {
        let (low, high) = self.bounds()?;
        let median = self.model.as_ref().map(|model| model.median);
        Some(!self.stalls && median.is_some_and(|median| (low..=high).contains(&median)))
    }

    pub(super) fn tolerance(&self) -> Option<String> {
        let (low, high) = self.bounds()?;
        Some(if low == 0.0 { format!("below {high}") } else { format!("{low} to {high}") })
    }

    pub(super) fn verdict(&self) -> &'static str {
        match self.ok() {
            Some(true) => "ok",
            Some(false) => "fail",
            None => "not compared",
        }
    }

    /// Its cell: `assumed` are the costs in nanoseconds, and the CPUs.
    pub(super) fn json(&self, read_ahead_kb: u64, assumed: &[(&'static str, u64)]) -> Value {
        let median = self.model.as_ref().map(|model| model.median);
        let assumed: serde_json::Map<String, Value> =
            assumed.iter().map(|(name, of)| ((*name).to_string(), Value::from(*of))).collect();
        json!({
            "series": "vma-retry",
            "experiment": "published job",
            "name": self.row.case,
            "variant": if self.row.with_series() { "vma-retry" } else { "baseline" },
            "read_ahead_kb": read_ahead_kb,
            "unit": self.unit(),
            "published": self.published,
            "figures": { "median": median, "distribution": self.model },
            "assumed": assumed,
            "error": median.map(|median| median - self.published),
            "error_unit": self.unit(),
            "tolerance": self.tolerance().unwrap_or("none".to_string()),
            "ok": self.ok(),
            "verdict": self.verdict(),
        })
    }
}

/// The least and the most of what the series did to the rounds of a published baseline.
pub(super) fn published_ratios() -> (f64, f64) {
    let rows = || PUBLISHED.vma_retry.rows.iter();
    let before = || rows().filter(|row| !row.with_series()).map(|row| row.rounds_s);
    let after = || rows().filter(|row| row.with_series()).map(|row| row.rounds_s);
    let least = after().fold(f64::MAX, f64::min) / before().fold(0.0, f64::max);
    let most = after().fold(0.0, f64::max) / before().fold(f64::MAX, f64::min);
    (least, most)
}
