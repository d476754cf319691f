//! The report on operations over folios: the time of each with every way to count, and what that
//! saves in units of L.

mod compared;
mod flat;
mod notes;
mod run;
mod setup;
mod tables;

use filemap_job::folio_ops::{FOLIO_OPS, Operation, PAGE_BYTES};
use filemap_job::{EngineKind, FolioOpsRecord, FolioOpsRun};
use serde::Serialize;

pub use compared::{Change, Compared, Configuration, FAULT_NS, Figure};
pub use run::{Asked, check, record};
pub(crate) use tables::OF_A_FOLIO;

use crate::footer::{Footer, Origin};
use crate::json::to_json;
use filemap_report::{Part, Report};

/// The report as JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Json<'a> {
    #[serde(flatten)]
    record: &'a FolioOpsRecord,
    /// Each operation, with what changes against the base.
    compared: &'a [Compared],
    scope: &'a str,
    command: &'a str,
}

/// The report on `record`, which `command` repeats. With `verbose`, the spread of every figure too.
pub fn report(record: &FolioOpsRecord, verbose: bool, command: String) -> Report {
    let footer = Footer::of(&[origin(record)], command);
    let compared = compared(record);
    let json = to_json(&Json {
        record,
        compared: &compared,
        scope: &footer.scope,
        command: &footer.command,
    });
    let mut parts = vec![Part::Heading(title(record)), setup::facts(record)];
    parts.extend(figures(record, &compared, verbose));
    parts.extend(Part::warnings(&record.warnings));
    Report { parts, rows: flat::rows(record), footer: footer.footer(), json }
}

/// What `record` is of.
fn title(record: &FolioOpsRecord) -> String {
    let bytes = record.benchmark.size.as_ref().map_or("memory", |size| &size.0);
    let place = match record.engine == EngineKind::Model.name() {
        true => "in the small mm of filemap",
        false => "on the kernel",
    };
    format!("{FOLIO_OPS} over {bytes}, {place}")
}

/// Where its figures come from.
pub(crate) fn origin(record: &FolioOpsRecord) -> Origin {
    Origin { engine: record.engine.clone(), kernel: None, environment: record.environment.clone() }
}

/// Every operation of `record`.
pub fn compared(record: &FolioOpsRecord) -> Vec<Compared> {
    Compared::all(&record.runs)
}

/// The figures of `record`, of which `all` is what was timed.
fn figures(record: &FolioOpsRecord, all: &[Compared], verbose: bool) -> Vec<Part> {
    let mut parts = vec![Part::Paragraph(notes::figures(&record.runs, all))];
    parts.extend(tables::of_times(all).into_iter().map(Part::Table));
    parts.extend(with_faults(all));
    parts.extend(copies(all, pages(record)));
    let is_here = record.engine == EngineKind::Model.name();
    let has_large = all.iter().any(|of| of.folio_bytes > PAGE_BYTES);
    parts.extend(contended(&record.runs, is_here && has_large));
    if verbose {
        parts.push(Part::Table(tables::spreads(all)));
    }
    parts
}

/// What reuse gains with faults of several costs, and what that is.
pub(crate) fn with_faults(all: &[Compared]) -> Vec<Part> {
    let mut parts: Vec<Part> = tables::with_faults(all).into_iter().map(Part::Table).collect();
    if !parts.is_empty() {
        parts.push(Part::Paragraph(notes::with_faults()));
    }
    parts
}

/// What threads get done on one folio, or why there is no table of that: here `has_large` folios
/// are left out where there is one CPU.
pub(crate) fn contended(runs: &[FolioOpsRun], has_large: bool) -> Vec<Part> {
    let note = notes::contended(runs).or_else(|| has_large.then(notes::one_cpu));
    let table = tables::contended(runs).map(Part::Table);
    table.into_iter().chain(note.map(Part::Paragraph)).collect()
}

/// By how much the time of `operation` changes; `None` where it was not timed.
pub(crate) fn changes(operation: Operation, all: &[Compared]) -> Option<Part> {
    let own = Compared::of_operation(operation, all);
    (!own.is_empty()).then(|| Part::Table(tables::changes(operation, &own)))
}

/// The pages that write faults copied of so many.
pub(crate) fn copies(all: &[Compared], pages: u64) -> Option<Part> {
    tables::copies(all, pages).map(Part::Table)
}

/// L beside all that was timed with it.
pub(crate) fn locked(runs: &[FolioOpsRun]) -> Option<Figure> {
    notes::locked(runs)
}

/// Pages of the memory.
pub(crate) fn pages(record: &FolioOpsRecord) -> u64 {
    let bytes = record.benchmark.size.as_ref().and_then(|size| size.bytes().ok());
    bytes.unwrap_or(0) / PAGE_BYTES
}
