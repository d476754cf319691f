//! Tables of the latencies of faults, reads and queries.

use filemap_job::waits::Latency;
use filemap_job::{Record, Run};
use filemap_report::units::{number, time};
use filemap_report::{Table, fold_cell};

use crate::stats::SampleStats;

/// Title of the tables, and of those with queries.
const TITLE: &str = "How long a fault and a read(2) took";
const TITLE_WITH_QUERIES: &str = "How long a fault, a read(2) and a query took";

/// Column headings: number of accesses, and their latencies.
const COLUMNS: [&str; 6] = ["count", "mean", "p50", "p99", "p99.9", "worst"];

/// A kind of access, with its name.
type AccessKind = (&'static str, fn(&Run) -> Option<Latency>);

const KINDS: [AccessKind; 3] =
    [("fault", |run| run.faults), ("read(2)", |run| run.reads), ("query", |run| run.queries)];

/// The title of a table of `records`.
fn title(records: &[Record]) -> &'static str {
    let mut runs = records.iter().flat_map(|record| &record.runs);
    if runs.any(|run| run.queries.is_some()) { TITLE_WITH_QUERIES } else { TITLE }
}

/// The latencies in a run of `record`, as medians over its runs; `None` if none is known.
pub(crate) fn table(record: &Record) -> Option<Table> {
    let row = |(name, of): &AccessKind| {
        let cells = cells(record, *of)?;
        Some([name.to_string()].into_iter().chain(cells).collect::<Vec<String>>())
    };
    let rows: Vec<Vec<String>> = KINDS.iter().filter_map(row).collect();
    (!rows.is_empty())
        .then(|| Table::from_parts(["access"], COLUMNS, rows))
        .map(|table| table.with_title(title(std::slice::from_ref(record))))
}

/// Maximum width of the names of variants, so that the table fits into 75 columns.
const NAME_COLUMNS: usize = 26;

/// The percentiles, with a row for each of `records`, which are called `names`.
pub(crate) fn comparison(names: &[String], records: &[Record]) -> Option<Table> {
    let row = |(kind, of): &AccessKind, (name, record): (&String, &Record)| {
        let percentiles = cells(record, *of)?.into_iter().skip(2);
        let is_long = name.chars().count() > NAME_COLUMNS;
        let name = if is_long { &name.replace('+', " +") } else { name };
        let name = fold_cell(name, NAME_COLUMNS);
        Some([kind.to_string(), name].into_iter().chain(percentiles).collect::<Vec<String>>())
    };
    let rows = KINDS
        .iter()
        .flat_map(|kind| names.iter().zip(records).filter_map(move |named| row(kind, named)));
    let rows: Vec<Vec<String>> = rows.collect();
    let heads = ["access", "variant"];
    (!rows.is_empty())
        .then(|| Table::from_parts(heads, COLUMNS[2..].iter().copied(), rows))
        .map(|table| table.with_title(title(records)))
}

/// The cells of one kind of access, each the median over all runs.
fn cells(record: &Record, of: fn(&Run) -> Option<Latency>) -> Option<[String; 6]> {
    let median = |field: fn(&Latency) -> f64| {
        let values = record.runs.iter().filter_map(of).map(|latency| field(&latency));
        SampleStats::from_sorted(values.collect()).map(|values| values.median)
    };
    let count = median(|latency| latency.count as f64)?;
    let fields: [fn(&Latency) -> f64; 5] = [
        |latency| latency.sum_ns as f64 / latency.count.max(1) as f64,
        |latency| latency.p50_ns as f64,
        |latency| latency.p99_ns as f64,
        |latency| latency.p999_ns as f64,
        |latency| latency.max_ns as f64,
    ];
    let [mean, p50, p99, p999, max] = fields.map(|field| median(field).map_or(String::new(), time));
    Some([number(count), mean, p50, p99, p999, max])
}
