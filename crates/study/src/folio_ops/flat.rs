//! Every figure as a row.

use filemap_job::FolioOpsRecord;
use filemap_job::folio_ops::{Contended, FolioCell};
use filemap_report::{Column, Table, csv, raw};

/// What a row is of: the record, the repeat, and an operation or a thread on one folio, of which
/// the batches in a second are known.
type Row<'a> = (&'a FolioOpsRecord, u64, Option<&'a FolioCell>, Option<(&'a Contended, f64)>);

/// One row for each size, operation, way to count and repeat. Threads on one folio have a row each.
pub(super) fn rows(record: &FolioOpsRecord) -> Table {
    let columns: [Column<Row>; 11] = [
        raw("engine", |(record, ..)| record.engine.clone().into()),
        raw("repeat", |(_, repeat, ..)| (*repeat).into()),
        raw("folio_bytes", |(_, _, cell, thread)| {
            cell.map(|of| of.folio_bytes).or(thread.map(|(of, _)| of.folio_bytes)).into()
        }),
        raw("operation", |(_, _, cell, _)| {
            cell.map_or("contended".to_string(), |of| of.operation.to_string()).into()
        }),
        raw("counters", |(_, _, cell, thread)| {
            cell.map(|of| of.counters.clone()).or(thread.map(|(of, _)| of.counters.clone())).into()
        }),
        raw("ns_per_page", |(_, _, cell, _)| cell.map(|of| of.ns_per_page).into()),
        raw("copied", |(_, _, cell, _)| cell.and_then(|of| of.copied).into()),
        raw("reused", |(_, _, cell, _)| cell.and_then(|of| of.reused).into()),
        raw("locked_ns", |(_, _, cell, _)| cell.and_then(|of| of.locked_ns).into()),
        raw("batches_per_second", |(.., thread)| thread.map(|(_, batches)| batches).into()),
        raw("longest_wait_ns", |(.., thread)| thread.and_then(|(of, _)| of.longest_wait_ns).into()),
    ];
    let mut rows: Vec<Row> = Vec::new();
    for (repeat, run) in (1..).zip(&record.runs) {
        rows.extend(run.cells.iter().map(|cell| (record, repeat, Some(cell), None)));
        rows.extend(run.contended.iter().flat_map(|of| {
            let threads = of.batches_per_second.iter();
            threads.map(move |batches| (record, repeat, None, Some((of, *batches))))
        }));
    }
    csv(&columns, &rows)
}
