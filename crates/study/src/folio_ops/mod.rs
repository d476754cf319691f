//! The report on operations over folios: the time of each with every counting scheme, and savings
//! in units of L. Schemes are compared within each repeat, and the figure is the median of these
//! changes: a disturbance of the machine affects all schemes of a repeat.

mod comparison;
mod notes;
mod owners;
mod run;
mod tables;

use std::collections::BTreeSet;

use filemap_job::folio_ops::{FOLIO_OPS, PAGE_BYTES};
use filemap_job::{FolioOpsRecord, FolioOpsRun};
use filemap_report::units::bytes;
use filemap_report::{Head, Part, Report, Table};
use serde::Serialize;
use serde_json::{Value, json};

pub use comparison::{FAULT_NS, Figure, OperationComparison, SchemeChange, SchemeFigures};
pub(crate) use owners::BatchCost;
pub use owners::count_owners;
pub use run::{SizeSource, check_memory, measure};

use crate::footer::{Footer, Origin};
use crate::json::{raw, to_json};
use crate::setup;

/// The report as JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Json<'a> {
    #[serde(flatten)]
    record: &'a FolioOpsRecord,
    /// Each operation, with the changes against the base.
    compared: &'a [OperationComparison],
    scope: &'a str,
    command: &'a str,
}

/// The report on `record`, which `command` repeats; with `verbose`, including every spread.
pub fn report(record: &FolioOpsRecord, verbose: bool, command: String) -> Report {
    let footer = Footer::from_origins(&[origin(record)], command);
    let compared = compare_operations(record);
    let json = to_json(&Json {
        record,
        compared: &compared,
        scope: &footer.scope,
        command: &footer.command,
    });
    let mut parts = vec![Part::Heading(title(record))];
    if record.counted.is_empty() {
        parts.push(facts(record));
        parts.extend(figures(record, &compared, verbose));
    } else {
        parts.push(counted_facts(record));
        parts.extend(owners::parts(&record.counted));
    }
    parts.extend(Part::warnings(&record.warnings));
    Report { parts, rows: rows(record), footer: footer.footer(), record_json: json }
}

/// The title.
fn title(record: &FolioOpsRecord) -> String {
    let bytes = record.benchmark.size.as_ref().map_or("memory", |size| &size.0);
    format!("{FOLIO_OPS} over {bytes}, in the small mm of filemap")
}

/// The facts of a report on counts.
fn counted_facts(record: &FolioOpsRecord) -> Part {
    let memory = bytes((pages(record) * PAGE_BYTES) as f64);
    let sizes = record.benchmark.folio_sizes.clone().unwrap_or_default();
    setup::facts(vec![("Memory", vec![memory, "anonymous".to_string()]), ("Folios", vec![sizes])])
}

/// The facts of a report on times. The machine is a real one.
fn facts(record: &FolioOpsRecord) -> Part {
    let environment = |key: &str| record.environment.get(key);
    let text = |key: &str| environment(key).and_then(Value::as_str).unwrap_or_default().to_string();
    let cores = environment("cores").and_then(Value::as_u64).map(|cores| match cores {
        1 => "1 CPU".to_string(),
        cores => format!("{cores} CPUs"),
    });
    let memory = record.benchmark.size.as_ref().and_then(|size| size.bytes().ok());
    let cells = record.runs.iter().flat_map(|run| &run.cells);
    let sizes: BTreeSet<u64> = cells.map(|cell| cell.folio_bytes).collect();
    let memory = memory.map_or_else(String::new, |size| bytes(size as f64));
    setup::facts(vec![
        ("Memory", vec![memory, "anonymous".to_string()]),
        ("Folios", sizes.into_iter().map(|size| bytes(size as f64)).collect()),
        ("Machine", vec![text("cpu"), cores.unwrap_or_default()]),
    ])
}

/// The origin of the figures.
pub(crate) fn origin(record: &FolioOpsRecord) -> Origin {
    Origin {
        engine: record.engine.clone(),
        kernel: None,
        arch: None,
        environment: record.environment.clone(),
    }
}

/// Compares every operation of `record`.
pub fn compare_operations(record: &FolioOpsRecord) -> Vec<OperationComparison> {
    OperationComparison::from_runs(&record.runs)
}

/// L over all samples.
pub(crate) fn locked(runs: &[FolioOpsRun]) -> Option<Figure> {
    let cells = runs.iter().flat_map(|run| &run.cells);
    Figure::from_samples(cells.filter_map(|cell| cell.locked_ns))
}

/// Pages of the memory.
pub(crate) fn pages(record: &FolioOpsRecord) -> u64 {
    let bytes = record.benchmark.size.as_ref().and_then(|size| size.bytes().ok());
    bytes.unwrap_or(0) / PAGE_BYTES
}

/// The tables and notes on the times of `record`, compared in `all`.
fn figures(record: &FolioOpsRecord, all: &[OperationComparison], verbose: bool) -> Vec<Part> {
    let fault_tables = tables::with_faults(all);
    let note = (!fault_tables.is_empty()).then(notes::with_faults);
    let tables = tables::times(all).into_iter().chain(fault_tables).map(Part::Table);
    let mut parts = vec![Part::Paragraph(notes::figures(&record.runs))];
    parts.extend(tables.chain(note.map(Part::Paragraph)));
    parts.extend(tables::copies(all, pages(record)).map(Part::Table));
    parts.extend(verbose.then(|| Part::Table(tables::spreads(all))));
    parts
}

/// The columns of CSV.
const ROWS: &str = "engine,repeat,folio_bytes,operation,counters,ns_per_page,copied,reused,\
                    locked_ns";

/// One row for each size, operation, way to count and repeat.
fn rows(record: &FolioOpsRecord) -> Table {
    if !record.counted.is_empty() {
        return flat(COUNTED, record.counted.iter().map(|own| json!(own)));
    }
    let mut rows = Vec::new();
    for (repeat, run) in (1..).zip(&record.runs) {
        rows.extend(run.cells.iter().map(|cell| json!(cell)).map(|mut row| {
            row["engine"] = record.engine.as_str().into();
            row["repeat"] = (repeat as u64).into();
            row
        }));
    }
    flat(ROWS, rows.into_iter())
}

/// The columns of CSV where owners are counted.
const COUNTED: &str = "about,case,counters,count,of";

/// A table of these objects for programs.
fn flat(columns: &str, rows: impl Iterator<Item = Value>) -> Table {
    let cells = |row: Value| columns.split(',').map(|name| raw(row.get(name))).collect();
    Table {
        title: String::new(),
        columns: columns.split(',').map(Head::text).collect(),
        rows: rows.map(cells).collect(),
    }
}
