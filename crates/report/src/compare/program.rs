//! The report on one program in several variants: in all, and by file.

#[cfg(feature = "schema")]
use std::collections::BTreeMap;
use std::collections::BTreeSet;

use filemap_job::program::{FileSummary, ProgramRecord, ProgramRun, ProgramSummary};
use filemap_job::{Cached, JobSpec, ProgramSpec, Record, Run, Spread, Summary};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Cell, body, data, tables, worse};
use crate::footer::Footer;
use crate::program::{MAX_ROWS, files_of, of_runs};
use crate::report::{Part, Report};
use crate::table::{Column, Table};

/// A variant of a program with its record.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramCell {
    /// The variant as it was asked for, such as `p1+p2`.
    pub variant: String,
    /// What came out.
    pub record: ProgramRecord,
}

/// The report on `cells`, all against the first, with `warnings` under its tables; `command`
/// repeats it. With `verbose`, every counter under its own name too.
///
/// # Panics
/// Without any cell.
pub fn of_program(
    cells: &[ProgramCell],
    warnings: &[String],
    verbose: bool,
    command: String,
) -> Report {
    let in_all: Vec<Cell> = cells.iter().map(in_all).collect();
    let records: Vec<Record> = in_all.iter().map(|cell| cell.record.clone()).collect();
    let footer = Footer::new(&records, command);
    let worse = worse(&in_all);
    let json = data::json(
        json_cells(cells, &in_all),
        data::regressions(&in_all, &worse),
        warnings,
        &footer,
    );
    let first = &cells[0];
    let title =
        format!("program of {}: changes against {}", files_of(&first.record), first.variant);
    let mut parts = vec![Part::Heading(title), Part::Table(tables::figures(&in_all))];
    parts.extend(by_file(cells, &in_all).into_iter().map(Part::Table));
    parts.extend(body(&in_all, &records, &worse, warnings, verbose));
    let mut rows = data::rows(&in_all);
    rows.rows.extend(rows_by_file(cells));
    Report { parts, rows, footer, json }
}

/// What a program counted in all, as a job of one file counts it.
pub(crate) fn in_all(cell: &ProgramCell) -> Cell {
    let run = |run: &ProgramRun| Run {
        seed: cell.record.program.seed.unwrap_or_default(),
        elapsed_ns: run.elapsed_ns,
        counters: run.counters,
        cached: Cached {
            inside: run.files.iter().map(|file| file.cached).sum(),
            before: Some(0),
            after: Some(0),
            between: None,
        },
        waits: run.waits.clone(),
        ..Run::default()
    };
    let runs: Vec<Run> = cell.record.all_runs().iter().map(run).collect();
    let ProgramRecord { schema, program, engine, environment, .. } = cell.record.clone();
    let record = Record {
        schema,
        job: JobSpec { duration: lasts(&program), ..program.shared() },
        engine,
        environment,
        summary: Summary::of(&runs),
        runs,
        warnings: Vec::new(),
    };
    Cell { variant: cell.variant.clone(), job: None, record }
}

/// For how long its threads make rounds, where they do.
fn lasts(program: &ProgramSpec) -> Option<String> {
    program.thread.iter().find_map(|thread| thread.lasts.clone())
}

/// A figure of a file: its name, and its spread over the runs of a record.
type Figure = (&'static str, fn(&FileSummary) -> Option<Spread>);

const FIGURES: [Figure; 3] = [
    ("pages read", |file| file.data_pages_read),
    ("major faults", |file| file.major_faults),
    ("pages cached at the end", |file| file.cached),
];

/// The file of a cell that is called so, which most cells have in the place `at`.
fn file_of<'a>(cell: &'a ProgramCell, at: usize, name: &str) -> Option<&'a FileSummary> {
    let files = &cell.record.summary.files;
    let is_it = |file: &&FileSummary| file.name == name;
    files.get(at).filter(is_it).or_else(|| files.iter().find(is_it))
}

/// The files of all cells by name, each with its place in the first that has it.
fn all_files(cells: &[ProgramCell]) -> Vec<(usize, &str)> {
    let mut known = BTreeSet::new();
    let files = cells.iter().flat_map(|cell| cell.record.summary.files.iter().enumerate());
    let files = files.map(|(at, file)| (at, file.name.as_str()));
    files.filter(|(_, name)| known.insert(*name)).collect()
}

/// A table for each figure: a row for each file, a column for each cell.
fn by_file(cells: &[ProgramCell], in_all: &[Cell]) -> Vec<Table> {
    let names = all_files(cells);
    let table = |(title, figure): &Figure| {
        let headings = in_all.iter().map(|cell| Column::right(tables::heading(cell, in_all)));
        let row = |&(at, name): &(usize, &str)| {
            let texts = cells.iter().map(|cell| of_runs(file_of(cell, at, name).and_then(figure)));
            [name.to_string()].into_iter().chain(texts).collect()
        };
        let mut rows: Vec<Vec<String>> = names.iter().take(MAX_ROWS).map(row).collect();
        if names.len() > MAX_ROWS {
            let mut last = vec![String::new(); cells.len() + 1];
            last[0] = format!("and {} more (in JSON)", names.len() - MAX_ROWS);
            rows.push(last);
        }
        let columns = [Column::left("file")].into_iter().chain(headings).collect();
        Table { title: format!("By file: {title}"), columns, rows }
    };
    FIGURES.iter().map(table).collect()
}

/// One row for each cell, file and figure.
fn rows_by_file(cells: &[ProgramCell]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for cell in cells {
        for (at, file) in cell.record.summary.files.iter().enumerate() {
            for (figure, of) in FIGURES {
                let Some(spread) = of(file) else { continue };
                let first = file_of(&cells[0], at, &file.name).and_then(of);
                let name = format!("{figure} of {}", file.name);
                rows.push(data::row([&cell.record.engine, &cell.variant, &name], spread, first));
            }
        }
    }
    rows
}

/// A cell as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct JsonCell<'a> {
    variant: &'a str,
    engine: &'a str,
    program: &'a ProgramSpec,
    figures: &'a ProgramSummary,
    runs: &'a [ProgramRun],
    /// In percent against the first cell.
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Option<f64>>"))]
    change: Map<String, Value>,
}

fn json_cells<'c>(cells: &'c [ProgramCell], in_all: &[Cell]) -> Vec<JsonCell<'c>> {
    let cell = |(cell, own): (&'c ProgramCell, &Cell)| JsonCell {
        variant: &cell.variant,
        engine: &cell.record.engine,
        program: &cell.record.program,
        figures: &cell.record.summary,
        runs: cell.record.all_runs(),
        change: data::changes(own, &in_all[0]),
    };
    cells.iter().zip(in_all).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use filemap_job::program::FileRun;
    use filemap_job::{Counters, Ran};
    use serde_json::json;

    use super::*;

    fn cell(variant: &str, engine: &str, pages: &[u64]) -> ProgramCell {
        let run = |&pages: &u64| ProgramRun {
            counters: Counters { data_pages_read: Some(pages), ..Counters::default() },
            files: vec![FileRun {
                name: "data".to_string(),
                data_pages_read: Some(pages),
                cached: Some(7),
                ..FileRun::default()
            }],
            ..ProgramRun::default()
        };
        let text = "[[file]]\nname = 'data'\nsize = '1m'\n[[open]]\nname = 'a'\nfile = 'data'\n\
            [[thread]]\n[[thread.phase]]\nopen = 'a'\nworkload = 'read-sequential'\n\
            accesses = 1\n";
        let program = ProgramSpec::from_toml(text).unwrap().validate(None).unwrap();
        let runs = pages.iter().map(run).collect();
        let (engine, environment) = (engine.parse().unwrap(), Map::new());
        let record = ProgramRecord::of(&program, Ran { engine, environment, runs });
        ProgramCell { variant: variant.to_string(), record }
    }

    #[test]
    fn a_program_is_compared_by_file_with_the_spread_of_its_runs() {
        let cells = [cell("baseline", "model", &[10]), cell("baseline", "kernel", &[9, 12, 10])];
        let report = of_program(&cells, &[], false, "c".to_string());
        let tables = report.parts.iter().filter_map(|part| match part {
            Part::Table(table) => Some(table.text()),
            _ => None,
        });
        let text = tables.collect::<String>();
        assert!(text.contains("data        10  10 (9 to 12)"), "{text}");
        let json: Value = serde_json::from_str(&report.json).unwrap();
        let spread = json!({ "median": 10, "mad": 1, "min": 9, "max": 12 });
        assert_eq!(json["cells"][1]["figures"]["files"][0]["data_pages_read"], spread);
        assert_eq!(json["cells"][1]["runs"][2]["counters"]["data_pages_read"], 10);
        assert!(report.rows.rows.iter().any(|row| row[2] == "pages read of data"));
    }
}
