//! The report on one job in several variants, on one engine or several.

use filemap_job::record::SCHEMA;
use filemap_job::{JobSpec, Record, Run, Spread, Summary};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::footer::Footer;
use crate::record::{elapsed_note, number, spreads};
use crate::report::{Part, Report, TEXT_COLUMNS, to_json};
use crate::stats::percent;
use crate::table::{Column, Table};

/// A variant with its record.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The variant as it was asked for, such as `p1+p2`.
    pub variant: String,
    /// What came out.
    pub record: Record,
}

/// The report on `cells`, all against the first, with `warnings` under its table; `command`
/// repeats it.
///
/// # Panics
/// Without any cell.
pub fn report(cells: &[Cell], warnings: &[String], command: String) -> Report {
    let records: Vec<_> = cells.iter().map(|cell| cell.record.clone()).collect();
    let footer = Footer::new(&records, command);
    let columns: Vec<_> = cells.iter().map(|cell| Figures::new(cell, cells)).collect();
    let json = json(cells, &columns, warnings, &footer);
    let mut parts = vec![Part::Heading(title(cells))];
    parts.extend(tables(&columns).into_iter().map(Part::Table));
    let runs = records[0].runs.len();
    if runs > 1 {
        parts.push(Part::Paragraph(format!("Medians of {runs} runs.")));
    }
    let warning = |warning: &String| Part::Paragraph(format!("Warning: {warning}."));
    parts.extend(warnings.iter().map(warning));
    parts.extend(records.iter().find_map(elapsed_note).map(Part::Paragraph));
    Report { parts, rows: rows(cells, &columns), footer, json }
}

/// The figures of one cell.
struct Figures {
    heading: String,
    spreads: Vec<(&'static str, Option<Spread>)>,
    /// Against the first cell, in percent.
    changes: Vec<Option<f64>>,
}

impl Figures {
    fn new(cell: &Cell, cells: &[Cell]) -> Self {
        let own = spreads(&cell.record);
        let change = |(own, first): (&(_, Option<Spread>), &(_, Option<Spread>))| {
            percent(own.1?.median, first.1?.median)
        };
        let several_engines = cells.iter().any(|other| other.record.engine != cell.record.engine);
        let engine = &cell.record.engine;
        Figures {
            heading: match several_engines {
                true => format!("{engine}\n{}", folded(&cell.variant)),
                false => folded(&cell.variant),
            },
            changes: own.iter().zip(&spreads(&cells[0].record)).map(change).collect(),
            spreads: own,
        }
    }
}

/// A name of several series on several lines.
fn folded(variant: &str) -> String {
    if variant.len() > 12 { variant.replace('+', "+\n") } else { variant.to_string() }
}

fn title(cells: &[Cell]) -> String {
    let job = &cells[0].record.job;
    let workload = job.workload.clone().unwrap_or("several phases".to_string());
    let size = job.file_size.as_ref().map_or(String::new(), |size| format!(" of {}", size.0));
    format!("{workload}{size}: changes against {}", cells[0].variant)
}

/// Counters by cells: as many tables as it takes to keep to the width of a page, each beginning
/// with the first cell.
fn tables(cells: &[Figures]) -> Vec<Table> {
    let (first, others) = cells.split_first().expect("there is a first cell");
    let mut tables = Vec::new();
    let mut start = 0;
    while start < others.len() {
        let mut table = table(first, &others[start..=start]);
        let mut end = start + 1;
        while end < others.len() {
            let wider = self::table(first, &others[start..=end]);
            if wider.text().lines().any(|line| line.chars().count() > TEXT_COLUMNS) {
                break;
            }
            table = wider;
            end += 1;
        }
        tables.push(table);
        start = end;
    }
    tables
}

fn table(first: &Figures, others: &[Figures]) -> Table {
    let mut columns = vec![Column::left("counter"), Column::right(first.heading.clone())];
    for other in others {
        columns.extend([Column::right(other.heading.clone()), Column::right("change")]);
    }
    let median =
        |spread: Option<Spread>| spread.map_or("-".to_string(), |spread| number(spread.median));
    let row = |(index, (name, spread)): (usize, &(&str, Option<Spread>))| {
        let mut cells = vec![(*name).to_string(), median(*spread)];
        for other in others {
            let own = other.spreads[index].1;
            cells.extend([median(own), change(*spread, own)]);
        }
        cells
    };
    let seen = |(index, (_, spread)): &(usize, &(&str, Option<Spread>))| {
        spread.is_some() || others.iter().any(|other| other.spreads[*index].1.is_some())
    };
    let rows = first.spreads.iter().enumerate().filter(seen).map(row).collect();
    Table { title: String::new(), columns, rows }
}

/// In percent; in factors where that says more.
fn change(first: Option<Spread>, own: Option<Spread>) -> String {
    let (Some(first), Some(own)) = (first, own) else { return "-".to_string() };
    match percent(own.median, first.median) {
        Some(0.0) => "=".to_string(),
        None if own.median == 0.0 => "=".to_string(),
        None => "new".to_string(),
        Some(percent) if percent >= 900.0 => format!("x {:.1}", percent / 100.0 + 1.0),
        Some(percent) => format!("{percent:+.1} %"),
    }
}

/// One row for each cell and counter.
fn rows(cells: &[Cell], figures: &[Figures]) -> Table {
    let names = ["engine", "variant", "counter", "median", "mad", "min", "max", "change_percent"];
    let mut rows = Vec::new();
    for (cell, figures) in cells.iter().zip(figures) {
        for ((name, spread), change) in figures.spreads.iter().zip(&figures.changes) {
            let Some(spread) = spread else { continue };
            rows.push(vec![
                cell.record.engine.clone(),
                cell.variant.clone(),
                (*name).to_string(),
                spread.median.to_string(),
                spread.mad.to_string(),
                spread.min.to_string(),
                spread.max.to_string(),
                change.map_or(String::new(), |change| change.to_string()),
            ]);
        }
    }
    Table { title: String::new(), columns: names.into_iter().map(Column::left).collect(), rows }
}

fn json(cells: &[Cell], figures: &[Figures], warnings: &[String], footer: &Footer) -> String {
    #[derive(Serialize)]
    struct Json<'a> {
        schema: u32,
        #[serde(flatten)]
        footer: &'a Footer,
        warnings: &'a [String],
        cells: Vec<JsonCell<'a>>,
    }
    #[derive(Serialize)]
    struct JsonCell<'a> {
        variant: &'a str,
        engine: &'a str,
        job: &'a JobSpec,
        figures: &'a Summary,
        runs: &'a [Run],
        /// In percent against the first cell.
        change: Map<String, Value>,
        error: Option<f64>,
        ok: Option<bool>,
    }
    let cells = cells.iter().zip(figures).map(|(cell, figures)| JsonCell {
        variant: &cell.variant,
        engine: &cell.record.engine,
        job: &cell.record.job,
        figures: &cell.record.summary,
        runs: &cell.record.runs,
        change: {
            let names = figures.spreads.iter().map(|(name, _)| (*name).to_string());
            names.zip(figures.changes.iter().map(|&change| change.into())).collect()
        },
        error: None,
        ok: None,
    });
    to_json(&Json { schema: SCHEMA, footer, warnings, cells: cells.collect() })
}
