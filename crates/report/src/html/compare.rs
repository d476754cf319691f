//! The record of a comparison, of a job or of a program.

use filemap_job::program::{ProgramRecord, ProgramRun, ProgramSummary};
use filemap_job::record::SCHEMA;
use filemap_job::{JobSpec, ProgramSpec, Record, Run, Summary};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::compare::{self, Cell, ProgramCell, name};
use crate::error::Error;
use crate::figures::{self, ELAPSED, FIGURES, MISSES_PER_DROP, ROUNDS_A_SECOND};
use crate::report::{Part, Report};
use crate::units::change;

use super::bars::{Bar, bars};
use super::spread::{self, Outcomes};
use super::{Shown, parts, read, run};

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
    cells: Vec<Value>,
}

#[derive(Deserialize)]
struct OfJob {
    job_file: Option<String>,
    variant: String,
    engine: String,
    job: JobSpec,
    figures: Summary,
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct OfProgram {
    variant: String,
    engine: String,
    program: ProgramSpec,
    figures: ProgramSummary,
    runs: Vec<ProgramRun>,
}

/// The page of a comparison.
pub(super) fn page(json: &str) -> Result<Shown, Error> {
    let compared: Compared = read(json)?;
    let is_program = compared.cells.first().is_some_and(|cell| cell.get("program").is_some());
    match is_program {
        true => of_programs(&compared),
        false => of_jobs(&compared),
    }
}

fn cells_of<'a, T: Deserialize<'a>>(compared: &'a Compared) -> Result<Vec<T>, Error> {
    let cells = compared.cells.iter().map(T::deserialize).collect::<Result<Vec<T>, _>>();
    cells.map_err(|error| Error::NoRecord { reason: error.to_string() })
}

/// What a comparison of nothing comes to.
fn without_runs() -> Error {
    Error::NoRecord { reason: "it compares nothing".to_string() }
}

/// The environment of a cell: there is one for each engine, where they are not all alike.
fn environment(compared: &Compared, engine: &str) -> Map<String, Value> {
    let own = compared.environment.get(engine).and_then(Value::as_object);
    own.unwrap_or(&compared.environment).clone()
}

fn of_jobs(compared: &Compared) -> Result<Shown, Error> {
    let of_jobs: Vec<OfJob> = cells_of(compared)?;
    if of_jobs.iter().any(|cell| cell.job_file != of_jobs[0].job_file) {
        let reason = "it compares several jobs, and a page shows one".to_string();
        return Err(Error::NoRecord { reason });
    }
    let cell = |cell: OfJob| {
        let record = Record {
            schema: SCHEMA,
            environment: environment(compared, &cell.engine),
            job: cell.job,
            engine: cell.engine,
            runs: cell.runs,
            summary: cell.figures,
            warnings: Vec::new(),
        };
        Cell { variant: cell.variant, job: None, record }
    };
    let cells: Vec<Cell> = of_jobs.into_iter().map(cell).collect();
    if cells.is_empty() || cells.iter().any(|cell| cell.record.runs.is_empty()) {
        return Err(without_runs());
    }
    let report = compare::report(&cells, &compared.warnings, false, String::new());
    let outcomes: Vec<Outcomes> =
        cells.iter().map(|cell| run::outcomes(&name(cell, &cells), &cell.record)).collect();
    let runs_are = run::runs_are(&cells[0].record);
    let more = html! {
        @if let Some(spread) = spread::picture(&outcomes, runs_are) { (spread) }
    };
    Ok(shown(report, &drawn(&cells), &more))
}

fn of_programs(compared: &Compared) -> Result<Shown, Error> {
    let of: Vec<OfProgram> = cells_of(compared)?;
    let cells = of.into_iter().map(|cell| {
        let run = cell.runs.first().cloned().ok_or_else(without_runs)?;
        let record = ProgramRecord {
            schema: SCHEMA,
            environment: environment(compared, &cell.engine),
            program: cell.program,
            engine: cell.engine,
            run,
            runs: cell.runs,
            summary: cell.figures,
            warnings: Vec::new(),
        };
        Ok(ProgramCell { variant: cell.variant, record })
    });
    let cells = cells.collect::<Result<Vec<ProgramCell>, Error>>()?;
    if cells.is_empty() {
        return Err(without_runs());
    }
    let report = compare::of_program(&cells, &compared.warnings, false, String::new());
    let in_all: Vec<Cell> = cells.iter().map(compare::in_all).collect();
    Ok(shown(report, &drawn(&in_all), &html! {}))
}

fn shown(report: Report, drawn: &Markup, more: &Markup) -> Shown {
    let title = match report.parts.first() {
        Some(Part::Heading(title)) => title.clone(),
        _ => "A comparison".to_string(),
    };
    let (facts, below) = run::split(report.parts);
    let (warnings, below) = run::warnings_first(below);
    let body = html! {
        (parts::all(&warnings))
        (parts::all(&facts))
        (drawn)
        (more)
        h2 { "Figures" }
        (parts::all(&below))
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
