//! The report on one job in several variants, on one engine or several.

#[cfg(feature = "schema")]
use std::collections::BTreeMap;

use filemap_job::record::SCHEMA;
use filemap_job::{JobSpec, Record, Run, Spread, Summary};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::footer::Footer;
use crate::record::{elapsed_note, measured_ns, number, outlier_note, reclaim_note, spreads};
use crate::report::{Part, Report, TEXT_COLUMNS, to_json};
use crate::significance::{LEVEL, least_p_value, p_value};
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
    parts.extend(times(cells).map(Part::Paragraph));
    let warning = |warning: &String| Part::Paragraph(format!("Warning: {warning}."));
    parts.extend(warnings.iter().map(warning));
    parts.extend(records.iter().find_map(reclaim_note).map(Part::Paragraph));
    parts.extend(records.iter().find_map(elapsed_note).map(Part::Paragraph));
    Report { parts, rows: rows(cells, &columns), footer, json }
}

/// What is to be said of measured times: outliers, and which of the cells differ.
fn times(cells: &[Cell]) -> impl Iterator<Item = String> {
    let outliers = cells.iter().filter_map(|cell| {
        outlier_note(&cell.record).map(|note| format!("{}: {note}", cell.variant))
    });
    let mut measured = cells.iter().filter(|cell| !measured_ns(&cell.record).is_empty());
    let first = measured.next();
    let verdicts = measured.filter_map(move |cell| first.map(|first| time_verdict(first, cell)));
    outliers.chain(verdicts)
}

/// Whether `cell` is faster or slower than `first`, as far as their runs can tell.
fn time_verdict(first: &Cell, cell: &Cell) -> String {
    let (before, after) = (measured_ns(&first.record), measured_ns(&cell.record));
    let median = |times: &[u64]| Spread::of(times.iter().copied()).map_or(0.0, |s| s.median);
    let change = percent(median(&after), median(&before)).unwrap_or(0.0);
    let times = format!("Time of {} against {}: {change:+.1} %", cell.variant, first.variant);
    let (runs, more) = (before.len().min(after.len()), before.len() + after.len());
    let least = least_p_value(before.len(), after.len());
    if least > LEVEL {
        return format!(
            "{times}, not tested: {runs} runs of each cannot show a difference (p is {least:.2} \
             at least); give --runs 5 or more."
        );
    }
    let p = p_value(&before, &after);
    let verdict = match p {
        p if p > LEVEL => "no difference shown",
        _ if change < 0.0 => "faster",
        _ => "slower",
    };
    format!("{times}, {verdict} (permutation test on ranks, {more} runs, p = {p:.3}).")
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
    format!("{}: changes against {}", cells[0].record.job.heading(), cells[0].variant)
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

/// The report as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Json<'a> {
    schema: u32,
    #[serde(flatten)]
    footer: &'a Footer,
    warnings: &'a [String],
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
    /// In percent against the first cell.
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Option<f64>>"))]
    change: Map<String, Value>,
    error: Option<f64>,
    ok: Option<bool>,
}

fn json(cells: &[Cell], figures: &[Figures], warnings: &[String], footer: &Footer) -> String {
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

#[cfg(test)]
mod tests {
    use filemap_job::EngineKind;

    use super::*;

    fn cell(variant: &str, engine: EngineKind, times: &[u64]) -> Cell {
        let spec = JobSpec {
            workload: Some("first".to_string()),
            file_size: Some(filemap_job::SizeText::of(1 << 20)),
            ..JobSpec::default()
        };
        let run = |&time: &u64| Run { elapsed_ns: Some(time), ..Run::default() };
        let job = spec.validate(None).unwrap();
        let runs = times.iter().map(run).collect();
        let record = Record::new(&job, engine.name(), Map::new(), runs);
        Cell { variant: variant.to_string(), record }
    }

    #[test]
    fn faster_is_said_of_measured_times_that_differ_only() {
        let kernel = |variant, times: &[u64]| cell(variant, EngineKind::Kernel, times);
        let said = |cells: &[Cell]| times(cells).collect::<Vec<_>>().join(" ");
        let slow = kernel("a", &[110, 120, 130, 140, 150]);
        let fast = kernel("b", &[50, 60, 70, 80, 90]);
        let apart = said(&[slow.clone(), fast.clone()]);
        assert!(apart.contains("b against a: -46.2 %, faster (") && apart.contains("p = 0.008"));
        assert!(said(&[fast, slow.clone()]).contains("+85.7 %, slower"));
        let mixed = kernel("c", &[100, 125, 131, 145, 160]);
        assert!(said(&[slow.clone(), mixed]).contains("no difference shown"));
        let few = said(&[kernel("d", &[9, 9, 9]), kernel("e", &[1, 1, 1])]);
        assert!(few.contains("not tested") && few.contains("--runs 5"), "{few}");
        let model = cell("m", EngineKind::Model, &[1, 2, 3, 4, 5]);
        assert_eq!(said(&[model, slow]), "", "what is predicted is not tested");
        let odd = said(&[kernel("f", &[10, 11, 12, 11, 90])]);
        assert_eq!(odd, "f: Outliers in time: run 5 (0.000 ms).");
    }
}
