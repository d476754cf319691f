//! What a report says of the workload `folio-ops`: the time of each operation with every way to
//! count, and what that saves in units of L.

mod compared;
mod flat;
mod notes;
mod tables;

use filemap_job::folio_ops::{Operation, PAGE_BYTES};
use filemap_job::{FolioOpsRun, Record};

pub use compared::{Change, Compared, Configuration, FAULT_NS, Figure};
pub(crate) use tables::OF_A_FOLIO;

use crate::report::Part;
use crate::table::Table;

/// Every operation of `record`; none for another workload.
pub fn compared(record: &Record) -> Vec<Compared> {
    Compared::all(&runs(record))
}

/// The parts of the report on `record`, of which `all` is what was timed.
pub(crate) fn parts(record: &Record, all: &[Compared], verbose: bool) -> Vec<Part> {
    let runs = runs(record);
    let mut parts = vec![Part::Paragraph(notes::figures(&runs, all))];
    parts.extend(tables::of_times(all).into_iter().map(Part::Table));
    parts.extend(with_faults(all));
    parts.extend(copies(all, pages(record)));
    parts.extend(contended(record));
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

/// What threads get done on one folio, or why there is no table of that.
pub(crate) fn contended(record: &Record) -> Vec<Part> {
    let runs = runs(record);
    let note = notes::contended(&runs).or_else(|| notes::one_cpu(record, &runs));
    let table = tables::contended(&runs).map(Part::Table);
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

/// One row for each size, operation, way to count and repeat.
pub(crate) fn rows(record: &Record) -> Table {
    flat::rows(record)
}

/// L beside all that was timed with it.
pub(crate) fn locked(record: &Record) -> Option<Figure> {
    notes::locked(&runs(record))
}

fn runs(record: &Record) -> Vec<&FolioOpsRun> {
    record.runs.iter().filter_map(|run| run.folio_ops.as_ref()).collect()
}

/// Pages of the memory.
fn pages(record: &Record) -> u64 {
    let bytes = record.job.file_size.as_ref().and_then(|size| size.bytes().ok());
    bytes.unwrap_or(0) / PAGE_BYTES
}
