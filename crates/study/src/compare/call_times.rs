//! Durations of system calls, by variant.

use filemap_job::{Record, Wait};
use filemap_report::Table;
use filemap_report::units::{number, time};

use super::Variants;
use super::emulated::is_emulated;
use super::figures::NOT_JUDGED;
use crate::run::CALLS;
use crate::stats::SampleStats;
use crate::waits::SPANS;

impl Variants<'_> {
    /// One row for each call and variant; `None` if no thread made such calls.
    pub(super) fn calls(&self) -> Option<Table> {
        let mut names: Vec<&str> = Vec::new();
        for call in self.records.iter().flat_map(|record| &record.runs).flat_map(|run| &run.calls) {
            if !names.contains(&call.cause.as_str()) {
                names.push(&call.cause);
            }
        }
        let row = |name: &str, at: usize| {
            let record = &self.records[at];
            let variant = [name.to_string(), self.name(at)];
            variant.into_iter().chain(spans(record, name)).collect()
        };
        let variants = 0..self.cells.len();
        let rows = names.iter().flat_map(|name| variants.clone().map(|at| row(name, at)));
        let rows: Vec<Vec<String>> = rows.collect();
        (!rows.is_empty())
            .then(|| Table::from_parts(["call", "variant"], SPANS, rows).with_title(CALLS))
    }
}

/// Number and durations of the calls `name` in a run: medians over all runs, and the range of the
/// longest call.
fn spans(record: &Record, name: &str) -> [String; 4] {
    let sample = |field: fn(&Wait) -> u64| {
        let calls = record.runs.iter().flat_map(|run| &run.calls);
        let calls = calls.filter(|call| call.cause == name);
        SampleStats::from_sorted(calls.map(|call| field(call) as f64).collect())
    };
    let mark = if is_emulated(record) { NOT_JUDGED } else { "" };
    let shown = |field: fn(&Wait) -> u64| {
        sample(field).map_or(String::new(), |own| format!("{}{mark}", time(own.median)))
    };
    let count = sample(|call| call.count).map_or(String::new(), |own| number(own.median));
    let longest = sample(|call| call.max_ns).map_or(String::new(), |own| {
        let range = format!(" ({} to {})", time(own.min), time(own.max));
        let range = if own.min == own.max { String::new() } else { range };
        format!("{}{mark}{range}", time(own.median))
    });
    [count, shown(|call| call.p50_ns), shown(|call| call.p99_ns), longest]
}
