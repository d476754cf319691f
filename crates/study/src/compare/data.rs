//! A comparison as JSON and CSV: raw counters under their names.

use std::collections::BTreeMap;

use filemap_job::record::SCHEMA;
use filemap_job::{Job, Run, Spread, Summary, Written};
use serde::Serialize;
use serde_json::{Map, Value};

use super::cell::Cell;
use crate::footer::Footer;
use crate::json::to_json;
use crate::record::spreads;
use crate::regression::Regression;
use crate::stats::percent;
use filemap_report::{Head, Table};

/// One row for each cell and counter.
pub(super) fn rows(cells: &[Cell]) -> Table {
    let names = ["engine", "variant", "counter", "median", "mad", "min", "max", "change_percent"];
    let first = spreads(&cells[0].record);
    let mut rows = Vec::new();
    for cell in cells {
        for ((name, spread), (_, first)) in spreads(&cell.record).into_iter().zip(&first) {
            let Some(spread) = spread else { continue };
            rows.push(row([&cell.record.engine, &cell.variant, name], spread, *first));
        }
    }
    Table { title: String::new(), columns: names.into_iter().map(Head::left).collect(), rows }
}

/// The row of a figure, which is `spread` here and `first` in the first cell: engine, variant and
/// its name come before it.
pub(super) fn row(named: [&str; 3], spread: Spread, first: Option<Spread>) -> Vec<String> {
    let Spread { median, mad, min, max } = spread;
    let values = [median.to_string(), mad.to_string(), min.to_string(), max.to_string()];
    let change = change(Some(spread), first).map_or(String::new(), |change| change.to_string());
    named.map(String::from).into_iter().chain(values).chain([change]).collect()
}

/// In percent.
fn change(own: Option<Spread>, first: Option<Spread>) -> Option<f64> {
    percent(own?.median, first?.median)
}

/// Each counter of `cell` against `first`.
pub(super) fn changes(cell: &Cell, first: &Cell) -> Map<String, Value> {
    let own = spreads(&cell.record).into_iter().zip(spreads(&first.record));
    own.map(|((name, own), (_, first))| (name.to_string(), change(own, first).into())).collect()
}

/// The report as JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Json<'a> {
    schema: u32,
    #[serde(flatten)]
    footer: &'a Footer,
    warnings: &'a [String],
    #[schemars(with = "Vec<crate::forms::RegressionEntry>")]
    regressions: Vec<Value>,
    cells: Vec<JsonCell<'a>>,
}

/// A cell as JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct JsonCell<'a> {
    /// The path of its job file, where several are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    job_file: Option<&'a str>,
    variant: &'a str,
    engine: &'a str,
    job: &'a Written,
    figures: &'a Summary,
    runs: &'a [Run],
    used_pages: Option<u64>,
    /// In percent against the first cell.
    #[schemars(with = "BTreeMap<String, Option<f64>>")]
    change: Map<String, Value>,
    error: Option<f64>,
    ok: Option<bool>,
}

/// What got `worse` in each of `cells`.
pub(super) fn regressions(cells: &[Cell], worse: &[Vec<Regression>]) -> Vec<Value> {
    let named = cells.iter().zip(worse);
    named.flat_map(|(cell, worse)| worse.iter().map(|w| w.json(&cell.variant))).collect()
}

/// `cells` as one object, with what got worse in them.
pub(super) fn json(
    cells: Vec<JsonCell>,
    regressions: Vec<Value>,
    warnings: &[String],
    footer: &Footer,
) -> String {
    to_json(&Json { schema: SCHEMA, footer, warnings, regressions, cells })
}

/// Each of `cells`, whose job is in `job_file` where there are several, as JSON.
pub(super) fn cells<'c>(cells: &'c [Cell], job_file: Option<&'c str>) -> Vec<JsonCell<'c>> {
    let cell = |cell: &'c Cell| JsonCell {
        job_file,
        variant: &cell.variant,
        engine: &cell.record.engine,
        job: &cell.record.job,
        figures: &cell.record.summary,
        runs: &cell.record.runs,
        used_pages: cell.job.as_ref().and_then(Job::used_pages),
        change: changes(cell, &cells[0]),
        error: None,
        ok: None,
    };
    cells.iter().map(cell).collect()
}
