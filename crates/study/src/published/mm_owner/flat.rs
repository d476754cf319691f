//! The cells of the series for CSV, and those without a published figure for JSON.

use filemap_job::FolioOpsRecord;
use serde_json::{Value, json};

use super::counting::Counting;
use super::published_vs_model::Beside;
use filemap_report::{Head, Table};

const NAMES: [&str; 10] = [
    "series",
    "workload",
    "folio_kib",
    "variant",
    "unit",
    "published",
    "here",
    "error",
    "ok",
    "verdict",
];

/// Every cell as one row.
pub(super) fn rows(beside: &[Beside]) -> Table {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let row = |own: &Beside| {
        vec![
            "mm-owner".to_string(),
            own.of.operation.to_string(),
            (own.of.folio_bytes >> 10).to_string(),
            own.counters.to_string(),
            own.unit().to_string(),
            number(own.published),
            number(own.own),
            number(own.error()),
            own.ok.map_or(String::new(), |ok| ok.to_string()),
            own.verdict().to_string(),
        ]
    };
    Table {
        title: String::new(),
        columns: NAMES.into_iter().map(Head::left).collect(),
        rows: beside.iter().map(row).collect(),
    }
}

/// What was counted or computed without a published figure beside it.
pub(super) fn counted(counting: &Counting) -> Vec<Value> {
    let atomics = counting.atomics.iter().map(|of| {
        let figures = json!({ "pages": of.pages, "fork": of.fork, "last_unmap": of.last_unmap });
        alone("read-modify-writes", format!("{} pages", of.pages), &of.counters, figures)
    });
    let slots = counting.falsely_shared.iter().map(|of| {
        let figures = json!({ "mms": of.mms, "share": of.share });
        alone("falsely shared", format!("{} mms", of.mms), "mm-owner", figures)
    });
    let examples = counting.examples.iter().flat_map(|maps| {
        maps.told.iter().map(|told| {
            let figures = json!({ "mapped": maps.mapped, "told": told });
            alone("reported", maps.name(), &told.counters, figures)
        })
    });
    atomics.chain(slots).chain(examples).collect()
}

/// What threads got done on one folio, in each repeat.
pub(super) fn contended(record: &FolioOpsRecord) -> Vec<Value> {
    let runs = record.runs.iter();
    let contended = runs.flat_map(|run| &run.contended).map(|of| {
        let figures = json!({
            "batches_per_second": of.batches_per_second,
            "longest_wait_ns": of.longest_wait_ns,
        });
        let mut cell = alone("one folio", "two threads".to_string(), &of.counters, figures);
        cell["folio_kib"] = (of.folio_bytes >> 10).into();
        cell
    });
    contended.collect()
}

fn alone(experiment: &str, name: String, variant: &str, figures: Value) -> Value {
    json!({
        "series": "mm-owner",
        "experiment": experiment,
        "name": name,
        "variant": variant,
        "published": null,
        "figures": figures,
        "error": null,
        "ok": null,
        "verdict": "model only",
    })
}
