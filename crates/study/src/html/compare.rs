//! The record of a comparison.

use filemap_job::record::SCHEMA;
use filemap_job::{Record, Run, Summary, Written};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::compare::{self, Cell, name};
use crate::error::Error;
use crate::figures::{self, ELAPSED, FIGURES, MISSES_PER_DROP, ROUNDS_A_SECOND};
use filemap_report::units::change;
use filemap_report::{Part, Report};

use super::{Shown, read, run};
use filemap_report::Bar;
use filemap_report::Outcomes;
use filemap_report::html::bars;

/// Figures that are drawn, where a job has them.
const DRAWN: [&str; 6] = [
    ROUNDS_A_SECOND,
    MISSES_PER_DROP,
    "read from device",
    "major faults",
    ELAPSED,
    "cached at the end",
];

#[derive(Deserialize)]
struct Compared {
    #[serde(default)]
    warnings: Vec<String>,
    environment: Map<String, Value>,
    cells: Vec<OfCell>,
}

#[derive(Deserialize)]
struct OfCell {
    job_file: Option<String>,
    variant: String,
    engine: String,
    job: Written,
    figures: Summary,
    runs: Vec<Run>,
}

/// The page of a comparison.
pub(super) fn page(json: &str) -> Result<Shown, Error> {
    let compared: Compared = read(json)?;
    if compared.cells.iter().any(|cell| cell.job_file != compared.cells[0].job_file) {
        let reason = "it compares several jobs, and a page shows one".to_string();
        return Err(Error::NoRecord { reason });
    }
    let cell = |cell: &OfCell| {
        let record = Record {
            schema: SCHEMA,
            environment: environment(&compared, &cell.engine),
            job: cell.job.clone(),
            engine: cell.engine.clone(),
            runs: cell.runs.clone(),
            summary: cell.figures.clone(),
            warnings: Vec::new(),
        };
        Cell { variant: cell.variant.clone(), job: None, record }
    };
    let cells: Vec<Cell> = compared.cells.iter().map(cell).collect();
    if cells.is_empty() || cells.iter().any(|cell| cell.record.runs.is_empty()) {
        return Err(Error::NoRecord { reason: "it compares nothing".to_string() });
    }
    let report = compare::report(&cells, &compared.warnings, false, String::new());
    let outcomes: Vec<Outcomes> =
        cells.iter().map(|cell| run::outcomes(&name(cell, &cells), &cell.record)).collect();
    let runs_are = run::runs_are(&cells[0].record);
    let more = html! {
        @if let Some(spread) = filemap_report::spread(&outcomes, runs_are) { (spread.markup()) }
    };
    Ok(shown(report, &drawn(&cells), &more))
}

/// The environment of a cell: there is one for each engine, where they are not all alike.
fn environment(compared: &Compared, engine: &str) -> Map<String, Value> {
    let own = compared.environment.get(engine).and_then(Value::as_object);
    own.unwrap_or(&compared.environment).clone()
}

fn shown(report: Report, drawn: &Markup, more: &Markup) -> Shown {
    let title = match report.parts.first() {
        Some(Part::Heading(title)) => title.clone(),
        _ => "A comparison".to_string(),
    };
    let (facts, below) = run::split(report.parts);
    let (warnings, below) = run::warnings_first(below);
    let body = html! {
        (filemap_report::html::all(&warnings))
        (filemap_report::html::all(&facts))
        (drawn)
        (more)
        h2 { "Figures" }
        (filemap_report::html::all(&below))
    };
    Shown { title, body }
}

/// The figures of each cell as bars.
fn drawn(cells: &[Cell]) -> Markup {
    let samples: Vec<_> = cells.iter().map(|cell| figures::samples(&cell.record, None)).collect();
    let of_figure = |wanted: &&str| {
        let at = FIGURES.iter().position(|figure| figure.name == *wanted)?;
        let median = |cell: usize| samples[cell][at].as_ref().map(|sample| sample.median);
        let first = median(0);
        let bar = |number: usize| {
            let value = median(number);
            let text = value.map_or("-".to_string(), |value| FIGURES[at].unit.text(value));
            let against = match (first, value) {
                (Some(first), Some(own)) if number > 0 => change(first, own),
                _ => String::new(),
            };
            let range = samples[number][at].as_ref().filter(|sample| sample.min < sample.max);
            let unit = FIGURES[at].unit;
            let range = range.map_or(String::new(), |sample| {
                format!("{} to {}", unit.text(sample.min), unit.text(sample.max))
            });
            let class = if number == 0 { "u2" } else { "u4" };
            let name = name(&cells[number], cells);
            Bar { name, value, class, texts: vec![text, against, range] }
        };
        let rows: Vec<Bar> = (0..cells.len()).map(bar).collect();
        let is_known = rows.iter().any(|bar| bar.value.is_some_and(|value| value > 0.0));
        let engines = cells.iter().map(|cell| cell.record.engine.as_str());
        let name = figures::row_name(&FIGURES[at], engines).trim().to_string();
        let name = name[..1].to_uppercase() + &name[1..];
        let heads = ["variant", "median", "change", "range"];
        is_known.then(|| bars(&name, &heads, &rows))
    };
    html! { @for table in DRAWN.iter().filter_map(of_figure) { (table) } }
}
