//! Tables of the waits of threads and of the durations of their calls.

use filemap_job::Wait;

use filemap_report::units::{number, time};
use filemap_report::{Head, Table};

/// Column headings: number of spans, and their durations.
pub(crate) const SPANS: [&str; 4] = ["spans", "p50", "p99", "longest"];

/// A table of the durations of `calls`.
pub(crate) fn calls(title: &str, calls: &[Wait]) -> Table {
    let row = |call: &Wait| {
        let times = [call.p50_ns, call.p99_ns, call.max_ns].map(|ns| time(ns as f64));
        [call.cause.clone(), number(call.count as f64)].into_iter().chain(times).collect()
    };
    Table::from_parts(["call"], SPANS, calls.iter().map(row)).with_title(title)
}

/// A table of `waits`.
pub(crate) fn table(title: &str, waits: &[Wait]) -> Table {
    let all: u64 = waits.iter().map(|wait| wait.sum_ns).sum();
    let row = |wait: &Wait| {
        let share = wait.sum_ns as f64 * 100.0 / all.max(1) as f64;
        let times = [wait.sum_ns, wait.p50_ns, wait.p99_ns, wait.max_ns];
        let [sum, p50, p99, max] = times.map(|ns| time(ns as f64));
        let spans = number(wait.count as f64);
        vec![wait.cause.clone(), format!("{share:.1} %"), sum, spans, p50, p99, max]
    };
    let heads = ["share", "in all"].into_iter().chain(SPANS).map(Head::number);
    Table {
        title: title.to_string(),
        columns: [Head::text("cause")].into_iter().chain(heads).collect(),
        rows: waits.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::waits::Histogram;

    use super::*;

    #[test]
    fn each_cause_has_its_share() {
        let wait = |cause: &str, spans: &[u64]| {
            let mut histogram = Histogram::default();
            spans.iter().for_each(|&ns| histogram.add(ns));
            Wait::from_histogram(cause, &histogram).unwrap()
        };
        let waits = [wait("device", &[1_000, 3_000]), wait("work", &[4_000])];
        assert_eq!(
            table("Waits", &waits).text(),
            "Waits\n\n\
             cause    share  in all  spans      p50   p99  longest\n\
             ------  ------  ------  -----  -------  ----  -------\n\
             device  50.0 %    4 us      2  1.02 us  3 us     3 us\n\
             work    50.0 %    4 us      1     4 us  4 us     4 us\n"
        );
    }
}
