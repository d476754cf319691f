//! The report on one job in several variants, on one engine or several.

mod by_file;
mod cell;
mod data;
mod letter;
mod several;
mod tables;

pub use cell::Cell;
pub(crate) use data::Json;
pub use letter::{JobFile, letter};
pub use several::{OfFile, of_several};

use std::collections::BTreeSet;

use filemap_job::Record;

pub(crate) use self::cell::name;
use crate::footer::Footer;
use crate::record::{elapsed_note, foreign_note, heading, measured_ns, outlier_note, reclaim_note};
use crate::regression::{self, Regression, regressions};
use crate::setup;
use crate::spread;
use crate::stats::{Sample, percent};
use crate::verdict::{Margin, OF_TIME, Tested, Verdict, samples};
use filemap_report::units::{bytes, bytes_range};
use filemap_report::{Head, Table};
use filemap_report::{Part, Report};

/// The report on `cells`, all against the first, with `warnings` under its table; `command`
/// repeats it. With `verbose`, every counter under its own name too.
///
/// # Panics
/// Without any cell.
pub fn report(cells: &[Cell], warnings: &[String], verbose: bool, command: String) -> Report {
    let records: Vec<_> = cells.iter().map(|cell| cell.record.clone()).collect();
    let footer = Footer::new(&records, command);
    let worse = worse(cells);
    let json =
        data::json(data::cells(cells, None), data::regressions(cells, &worse), warnings, &footer);
    let mut parts = vec![
        Part::Heading(title(cells)),
        setup::of_records(&records),
        Part::Table(tables::figures(cells)),
    ];
    parts.extend(by_file::tables(cells).into_iter().map(Part::Table));
    parts.extend(body(cells, &records, &worse, warnings, verbose));
    let mut rows = data::rows(cells);
    rows.rows.extend(by_file::rows(cells));
    Report { parts, rows, footer: footer.footer(), json }
}

/// What is said below the figures of `cells`, whose records are `records`.
fn body(
    cells: &[Cell],
    records: &[Record],
    worse: &[Vec<Regression>],
    warnings: &[String],
    verbose: bool,
) -> Vec<Part> {
    let mut parts = Vec::new();
    let seeds = spread::seeds(&records[0]);
    let runs = records[0].runs.len();
    if seeds > 1 {
        parts.push(Part::Table(spread_table(cells)));
        let notes = cells.iter().filter_map(|cell| spread::note(&name(cell, cells), &read(cell)?));
        parts.extend(notes.map(Part::Paragraph));
    }
    match (seeds, runs) {
        (_, 1) => {}
        (1, runs) => parts.push(Part::Paragraph(format!("Medians of {runs} runs."))),
        (seeds, _) => parts.push(Part::Paragraph(format!("Medians of {seeds} seeds."))),
    }
    parts.extend(findings(cells, worse, warnings));
    if verbose {
        parts.extend(tables::counters(cells).into_iter().map(Part::Table));
    }
    parts.extend(conditions(records));
    parts
}

/// What got worse in `cells`, which times differ, and `warnings`.
fn findings(cells: &[Cell], worse: &[Vec<Regression>], warnings: &[String]) -> Vec<Part> {
    let mut parts = Vec::new();
    let lines = cells.iter().zip(worse);
    let lines =
        lines.filter_map(|(cell, worse)| regression::line(&name(cell, cells), &cell.record, worse));
    let lines: Vec<String> = lines.collect();
    if !lines.is_empty() {
        let plural = if lines.len() == 1 { "Regression" } else { "Regressions" };
        let against = format!("{plural} against {}:", cells[0].variant);
        parts.extend([Part::Paragraph(against), Part::List(lines)]);
    }
    parts.extend(times(cells).map(Part::Paragraph));
    parts.extend(Part::warnings(warnings));
    parts
}

/// Under which conditions the figures of `records` hold.
fn conditions(records: &[Record]) -> Vec<Part> {
    let mut parts = Vec::new();
    parts.extend(records.iter().find_map(reclaim_note).map(Part::Paragraph));
    parts.extend(records.iter().filter_map(foreign_note).map(Part::Paragraph));
    let notes: BTreeSet<String> = records.iter().filter_map(elapsed_note).collect();
    parts.extend(notes.into_iter().map(Part::Paragraph));
    parts
}

/// The regressions of each cell against the first one of its engine.
fn worse(cells: &[Cell]) -> Vec<Vec<Regression>> {
    let first = |cell: &Cell| cells.iter().find(|first| first.record.engine == cell.record.engine);
    let of = |cell: &Cell| {
        first(cell).map_or(Vec::new(), |first| regressions(&first.record, &cell.record))
    };
    cells.iter().map(of).collect()
}

/// Bytes read over the runs of a cell.
fn read(cell: &Cell) -> Option<Sample> {
    Sample::of(spread::bytes_read(&cell.record))
}

/// How far the cells spread over seeds, and how each differs from the first by the same seed.
fn spread_table(cells: &[Cell]) -> Table {
    let first = spread::bytes_read(&cells[0].record);
    let row = |cell: &Cell| {
        let read = read(cell)?;
        let changes = read.samples.iter().zip(&first);
        let changes = changes.filter_map(|(&own, &first)| percent(own, first));
        let changes = Sample::of(changes.collect());
        let range = changes.filter(|_| read.samples.len() == first.len()).map(|changes| {
            match (format!("{:+.1}", changes.min), format!("{:+.1}", changes.max)) {
                (min, max) if min == max => format!("{min} %"),
                (min, max) => format!("{min} to {max} %"),
            }
        });
        Some(vec![
            name(cell, cells),
            bytes(read.median),
            bytes_range(read.min, read.max),
            range.unwrap_or("-".to_string()),
        ])
    };
    Table {
        title: format!("Read from device over {} seeds", spread::seeds(&cells[0].record)),
        columns: vec![
            Head::left("variant"),
            Head::right("median"),
            Head::right("least to most"),
            Head::right("change, seed by seed"),
        ],
        rows: cells.iter().filter_map(row).collect(),
    }
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
    let of = |cell: &Cell| samples(measured_ns(&cell.record));
    let tested = Tested::unpaired(&of(first), &of(cell), Margin::NONE);
    let change = tested.change_percent().unwrap_or(0.0);
    let times = format!("Time of {} against {}: {change:+.1} %", cell.variant, first.variant);
    let [before, after] = tested.runs;
    match (tested.verdict, before.min(after)) {
        (_, 1) => {
            format!("{times}, not tested: one run of each shows nothing; give --runs 5 or more.")
        }
        (Verdict::NotTested, runs) => format!(
            "{times}, not tested: {runs} runs of each cannot show a difference (p is {:.2} at \
             least); give --runs 5 or more.",
            tested.least_p_value
        ),
        (verdict, _) => format!(
            "{times}, {} (permutation test on ranks, {} runs, p = {:.3}).",
            verdict.said(OF_TIME),
            before + after,
            tested.p_value
        ),
    }
}

fn title(cells: &[Cell]) -> String {
    format!("{}: changes against {}", heading(&cells[0].record), cells[0].variant)
}

#[cfg(test)]
mod tests {
    use filemap_job::{EngineKind, JobSpec, Run};
    use serde_json::Map;

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
        Cell { variant: variant.to_string(), job: Some(job), record }
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
        assert_eq!(odd, "f: Outliers in time: run 5 (90 ns).");
    }
}
