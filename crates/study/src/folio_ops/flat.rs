//! Every figure as a row.

use filemap_job::folio_ops::FolioCell;
use filemap_job::{FolioOpsRecord, FolioOpsRun};

use filemap_report::{Head, Table};

const NAMES: [&str; 11] = [
    "engine",
    "repeat",
    "folio_bytes",
    "operation",
    "counters",
    "ns_per_page",
    "copied",
    "reused",
    "locked_ns",
    "batches_per_second",
    "longest_wait_ns",
];

/// One row for each size, operation, way to count and repeat. Threads on one folio have a row each.
pub(super) fn rows(record: &FolioOpsRecord) -> Table {
    let rows = record.runs.iter().enumerate().flat_map(|(repeat, run)| {
        let first = [record.engine.clone(), (repeat + 1).to_string()];
        let own = rows_of(run).into_iter();
        own.map(|row| first.iter().cloned().chain(row).collect()).collect::<Vec<_>>()
    });
    Table {
        title: String::new(),
        columns: NAMES.into_iter().map(Head::left).collect(),
        rows: rows.collect(),
    }
}

fn rows_of(run: &FolioOpsRun) -> Vec<Vec<String>> {
    let count = |count: Option<u64>| count.map_or(String::new(), |count| count.to_string());
    let cell = |cell: &FolioCell| {
        vec![
            cell.folio_bytes.to_string(),
            cell.operation.to_string(),
            cell.counters.clone(),
            cell.ns_per_page.to_string(),
            count(cell.copied),
            count(cell.reused),
            cell.locked_ns.map_or(String::new(), |ns| ns.to_string()),
            String::new(),
            String::new(),
        ]
    };
    let mut rows: Vec<Vec<String>> = run.cells.iter().map(cell).collect();
    for contended in &run.contended {
        for batches in &contended.batches_per_second {
            let mut row = vec![contended.folio_bytes.to_string(), "contended".to_string()];
            row.push(contended.counters.clone());
            row.extend([const { String::new() }; 4]);
            row.extend([batches.to_string(), count(contended.longest_wait_ns)]);
            rows.push(row);
        }
    }
    rows
}
