//! A comparison by file, of a job with tables.

use std::collections::BTreeSet;

use filemap_job::{FileSummary, Spread};

use super::cell::Cell;
use super::{data, tables};
use crate::record::{MAX_ROWS, of_runs};
use filemap_report::{Head, Table};

/// A figure of a file: its name, and its spread over the runs of a record.
type Figure = (&'static str, fn(&FileSummary) -> Option<Spread>);

const FIGURES: [Figure; 3] = [
    ("pages read", |file| file.data_pages_read),
    ("major faults", |file| file.major_faults),
    ("pages cached at the end", |file| file.cached),
];

/// The file of a cell that is called so, which most cells have in the place `at`.
fn file_of<'a>(cell: &'a Cell, at: usize, name: &str) -> Option<&'a FileSummary> {
    let files = &cell.record.summary.files;
    let is_it = |file: &&FileSummary| file.name == name;
    files.get(at).filter(is_it).or_else(|| files.iter().find(is_it))
}

/// The files of all cells by name, each with its place in the first that has it.
fn all_files(cells: &[Cell]) -> Vec<(usize, &str)> {
    let mut known = BTreeSet::new();
    let files = cells.iter().flat_map(|cell| cell.record.summary.files.iter().enumerate());
    let files = files.map(|(at, file)| (at, file.name.as_str()));
    files.filter(|(_, name)| known.insert(*name)).collect()
}

/// A table for each figure: a row for each file, a column for each cell.
pub(super) fn tables(cells: &[Cell]) -> Vec<Table> {
    let names = all_files(cells);
    if names.is_empty() {
        return Vec::new();
    }
    let table = |(title, figure): &Figure| {
        let headings = cells.iter().map(|cell| Head::right(tables::heading(cell, cells)));
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
        let columns = [Head::left("file")].into_iter().chain(headings).collect();
        Table { title: format!("By file: {title}"), columns, rows }
    };
    FIGURES.iter().map(table).collect()
}

/// One row for each cell, file and figure.
pub(super) fn rows(cells: &[Cell]) -> Vec<Vec<String>> {
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

#[cfg(test)]
mod tests {
    use filemap_job::{Counters, FileRun, ProgramSpec, Ran, Record, Run};
    use serde_json::{Map, Value, json};

    use super::super::report;
    use super::*;
    use filemap_report::Part;

    fn cell(variant: &str, engine: &str, pages: &[u64]) -> Cell {
        let run = |&pages: &u64| Run {
            counters: Counters { data_pages_read: Some(pages), ..Counters::default() },
            files: vec![FileRun {
                name: "data".to_string(),
                data_pages_read: Some(pages),
                cached: Some(7),
                ..FileRun::default()
            }],
            ..Run::default()
        };
        let text = "[[file]]\nname = 'data'\nsize = '1m'\n[[open]]\nname = 'a'\nfile = 'data'\n\
            [[thread]]\n[[thread.phase]]\nopen = 'a'\nworkload = 'read-sequential'\n\
            accesses = 1\n";
        let program = ProgramSpec::from_toml(text).unwrap().validate(None).unwrap();
        let runs = pages.iter().map(run).collect();
        let (engine, environment) = (engine.parse().unwrap(), Map::new());
        let record = Record::of(&program, Ran { engine, environment, runs });
        Cell { variant: variant.to_string(), job: None, record }
    }

    #[test]
    fn a_program_is_compared_by_file_with_the_spread_of_its_runs() {
        let cells = [cell("baseline", "model", &[10]), cell("baseline", "kernel", &[9, 12, 10])];
        let report = report(&cells, &[], false, "c".to_string());
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
