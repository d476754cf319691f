//! The cells of the series for JSON and CSV.

use serde_json::{Value, json};

use super::PAGE_KIB;
use super::causes;
use super::figures::{Beside, Variant, VariantPair, published_ratios};
use super::tables::Tried;
use super::trial::{Trial, TrialRun};
use filemap_report::{Head, Table};

/// The least and the most of the published ratios of throughput beside the model's.
pub(super) fn ratio_json(pair: &VariantPair, read_ahead_kb: u64) -> Vec<Value> {
    let ratios = pair.ratios();
    let median = ratios.as_ref().map(|ratios| ratios.median);
    let (least, most) = published_ratios();
    let cell = |(name, published): (&str, f64)| {
        json!({
            "series": "vma-retry",
            "experiment": "published job",
            "name": name,
            "variant": "vma-retry",
            "read_ahead_kb": read_ahead_kb,
            "unit": "rounds with the series for each without it",
            "published": published,
            "figures": { "median": median, "distribution": ratios },
            "error": median.map(|median| median - published),
            "error_unit": "rounds with the series for each without it",
            "ok": null,
            "verdict": "not compared",
        })
    };
    [("least published ratio", least), ("largest published ratio", most)].map(cell).to_vec()
}

/// All of a variant of the published job.
pub(super) fn variant_json(variant: &Variant) -> Value {
    let mut figures = variant.json();
    figures["conditions"] = conditions(&variant.trial);
    figures["time"] = causes::json(variant);
    model_only("published job", "published job", &variant.trial, figures)
}

/// An experiment, without the series and with it.
pub(super) fn tried_json(tried: &Tried) -> Vec<Value> {
    let cell = |(trial, run): (&Trial, &TrialRun)| {
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
        model_only(tried.experiment.kind.name(), &tried.experiment.name, trial, figures)
    };
    let runs = [Some(tried.before), tried.after].into_iter().flatten();
    tried.experiment.trials.iter().zip(runs).map(cell).collect()
}

fn model_only(experiment: &str, name: &str, trial: &Trial, figures: Value) -> Value {
    json!({
        "series": "vma-retry",
        "experiment": experiment,
        "name": name,
        "variant": trial.variant(),
        "read_ahead_kb": trial.read_ahead_pages * PAGE_KIB,
        "published": null,
        "figures": figures,
        "error": null,
        "ok": null,
        "verdict": "model only",
    })
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

/// Every cell as one row.
pub(super) fn rows(beside: &[Beside], pair: &VariantPair, tried: &[Tried]) -> Table {
    let mut rows = Vec::new();
    for of in beside {
        let model = of.model.as_ref();
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        rows.push(vec![
            "vma-retry".to_string(),
            "published job".to_string(),
            of.row.case.clone(),
            if of.row.with_series() { "vma-retry" } else { "baseline" }.to_string(),
            of.unit().to_string(),
            of.published.to_string(),
            number(model.map(|model| model.median)),
            number(model.map(|model| model.min)),
            number(model.map(|model| model.max)),
            of.ok().map_or(String::new(), |ok| ok.to_string()),
            of.verdict().to_string(),
        ]);
    }
    let mut add = |experiment: &str, name: &str, variant: &str, figures: Figures| {
        for (unit, figure) in figures {
            let figure = figure.map_or(String::new(), |figure| figure.to_string());
            let mut row = vec!["vma-retry".to_string()];
            row.extend([experiment, name, variant, unit, ""].map(str::to_string));
            row.extend([figure.as_str(), "", "", "", "model only"].map(str::to_string));
            rows.push(row);
        }
    };
    for variant in &pair.variants {
        let median = |of: fn(&TrialRun) -> f64| Some(variant.sample(of).median);
        let figures = [
            ("retry_mmap_drop", median(|run| run.drops as f64)),
            ("retry_arrival", median(|run| run.retries as f64)),
            ("retry_io_miss", median(|run| run.misses as f64)),
        ];
        add("published job", "counters", variant.trial.variant(), figures);
    }
    for of in tried {
        let runs = [Some(of.before), of.after].into_iter().flatten();
        for (trial, run) in of.experiment.trials.iter().zip(runs) {
            let figures = [
                ("misses of 100 drops", Some(run.miss_percent())),
                ("drops a round", run.drops_per_round()),
                ("rounds a second", Some(run.rounds_s())),
            ];
            let experiment = of.experiment;
            add(experiment.kind.name(), &experiment.name, trial.variant(), figures);
        }
    }
    let names = [
        "series",
        "experiment",
        "name",
        "variant",
        "figure",
        "published",
        "model",
        "min",
        "max",
        "ok",
        "verdict",
    ];
    let columns = names.into_iter().map(Head::left).collect();
    Table { title: String::new(), columns, rows }
}

/// Figures with their units.
type Figures = [(&'static str, Option<f64>); 3];
