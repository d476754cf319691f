//! A comparison for programs: raw counters under their names.

#[cfg(feature = "schema")]
use std::collections::BTreeMap;

use filemap_job::record::SCHEMA;
use filemap_job::{Job, JobSpec, Run, Spread, Summary};
use serde::Serialize;
use serde_json::{Map, Value};

use super::Cell;
use crate::footer::Footer;
use crate::record::spreads;
use crate::regression::Regression;
use crate::report::to_json;
use crate::stats::percent;
use crate::table::{Column, Table};

/// One row for each cell and counter.
pub(super) fn rows(cells: &[Cell]) -> Table {
    let names = ["engine", "variant", "counter", "median", "mad", "min", "max", "change_percent"];
    let first = spreads(&cells[0].record);
    let mut rows = Vec::new();
    for cell in cells {
        for ((name, spread), (_, first)) in spreads(&cell.record).into_iter().zip(&first) {
            let Some(spread) = spread else { continue };
            rows.push(vec![
                cell.record.engine.clone(),
                cell.variant.clone(),
                name.to_string(),
                spread.median.to_string(),
                spread.mad.to_string(),
                spread.min.to_string(),
                spread.max.to_string(),
                change(Some(spread), *first).map_or(String::new(), |change| change.to_string()),
            ]);
        }
    }
    Table { title: String::new(), columns: names.into_iter().map(Column::left).collect(), rows }
}

/// In percent.
pub(super) fn change(own: Option<Spread>, first: Option<Spread>) -> Option<f64> {
    percent(own?.median, first?.median)
}

/// Each counter of `cell` against `first`.
pub(super) fn changes(cell: &Cell, first: &Cell) -> Map<String, Value> {
    let own = spreads(&cell.record).into_iter().zip(spreads(&first.record));
    own.map(|((name, own), (_, first))| (name.to_string(), change(own, first).into())).collect()
}

/// The report as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Json<'a> {
    schema: u32,
    #[serde(flatten)]
    footer: &'a Footer,
    warnings: &'a [String],
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::schema::RegressionEntry>"))]
    regressions: Vec<Value>,
    cells: Vec<JsonCell<'a>>,
}

/// A cell as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonCell<'a> {
    variant: &'a str,
    engine: &'a str,
    job: &'a JobSpec,
    figures: &'a Summary,
    runs: &'a [Run],
    used_pages: Option<u64>,
    /// In percent against the first cell.
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Option<f64>>"))]
    change: Map<String, Value>,
    error: Option<f64>,
    ok: Option<bool>,
}

/// One object.
pub(super) fn json(
    cells: &[Cell],
    worse: &[Vec<Regression>],
    warnings: &[String],
    footer: &Footer,
) -> String {
    let named = cells.iter().zip(worse);
    let regressions = named.flat_map(|(cell, worse)| worse.iter().map(|w| w.json(&cell.variant)));
    let regressions = regressions.collect();
    let cells = cells.iter().map(|cell| JsonCell {
        variant: &cell.variant,
        engine: &cell.record.engine,
        job: &cell.record.job,
        figures: &cell.record.summary,
        runs: &cell.record.runs,
        used_pages: cell.job.as_ref().and_then(Job::used_pages),
        change: changes(cell, &cells[0]),
        error: None,
        ok: None,
    });
    let cells = cells.collect();
    to_json(&Json { schema: SCHEMA, footer, warnings, regressions, cells })
}
