//! Counters of a job by file, mapping and thread, and what its threads waited for.

use filemap_job::{Counters, EngineKind, Record, Run, Spread};

use crate::record::{MAX_ROWS, with_range};
use crate::{latency, waits};
use filemap_report::Part;
use filemap_report::Table;
use filemap_report::units::{number, time};

/// The tables by file, mapping and thread.
pub(super) fn parts(record: &Record) -> Vec<Part> {
    let Some(run) = record.runs.first() else { return Vec::new() };
    let tables = [files(record), mappings(run), threads(run)];
    let shown = tables.into_iter().filter(|table| !table.rows.is_empty());
    let mut parts: Vec<Part> = shown.map(Part::Table).collect();
    if record.runs.len() > 1 && parts.len() > 1 {
        let text = "The tables by mapping and thread show the first run.";
        parts.push(Part::Paragraph(text.to_string()));
    }
    parts
}

/// Title of the table of `mmap_lock` calls.
pub(crate) const CALLS: &str = "How long calls took that change what is mapped";

/// Latencies of accesses, waits of the threads of the first run, and the durations of their calls.
pub(crate) fn wait_tables(record: &Record) -> Vec<Part> {
    let Some(run) = record.runs.first() else { return Vec::new() };
    let calls = waits::calls(CALLS, &run.calls);
    let calls = (!run.calls.is_empty()).then_some(Part::Table(calls));
    let latencies = latency::table(record).map(Part::Table);
    if run.waits.is_empty() {
        return latencies.into_iter().chain(calls).collect();
    }
    let is_model = record.engine == EngineKind::Model.name();
    let title =
        if is_model { "Where the time of the threads went" } else { "What the threads waited for" };
    let mut parts: Vec<Part> = latencies.into_iter().collect();
    parts.push(Part::Table(waits::table(title, &run.waits)));
    if let Some(ns) = run.traced_ns {
        let time_text = time(ns as f64);
        let text =
            format!("Waits are those of the first {time_text}: the trace's buffer was full then.");
        parts.push(Part::Paragraph(text));
    }
    parts.extend(calls);
    parts
}

/// The spread over all runs as text; empty if no run has the count.
fn spread_text(spread: Option<Spread>) -> String {
    spread.map_or(String::new(), |spread| {
        with_range(spread.median, [spread.min as f64, spread.max as f64])
    })
}

fn files(record: &Record) -> Table {
    let rows = record.summary.files.iter().map(|file| {
        let counts = [file.data_pages_read, file.major_faults, file.evicted_pages, file.cached];
        [file.name.clone()].into_iter().chain(counts.map(spread_text)).collect()
    });
    table("file", &["pages read", "major faults", "evicted", "cached"], rows)
}

/// Columns for mappings and threads; only threads have the last one, their time.
const COUNTED: [&str; 5] = ["accesses", "pages read", "major faults", "minor faults", "ms"];

fn counter_row(name: &str, counters: &Counters) -> Vec<String> {
    let counts =
        [counters.accesses, counters.data_pages_read, counters.major_faults, counters.minor_faults];
    let counts = counts.map(|count| count.map_or_else(String::new, |count| number(count as f64)));
    [name.to_string()].into_iter().chain(counts).collect()
}

fn mappings(run: &Run) -> Table {
    let rows = run.mappings.iter().map(|mapping| counter_row(&mapping.name, &mapping.counters));
    table("mapping", &COUNTED[..4], rows)
}

/// The table by thread; empty for a single thread.
fn threads(run: &Run) -> Table {
    let rows = run.threads.iter().filter(|_| run.threads.len() > 1).map(|thread| {
        let ms = thread.elapsed_ns.map_or(String::new(), |ns| format!("{:.3}", ns as f64 / 1e6));
        let mut row = counter_row(&thread.name, &thread.counters);
        row.push(ms);
        row
    });
    table("thread", &COUNTED, rows)
}

fn table(title: &str, heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    Table::from_parts([title], heads.iter().copied(), rows).truncate_rows(MAX_ROWS, 0)
}

#[cfg(test)]
mod tests {
    use filemap_job::{FileRun, JobRuns, JobSpec, ThreadRun};
    use serde_json::Map;

    use super::*;

    pub(crate) fn record(files: usize) -> Record {
        let text = "with = 'p1'\n[[file]]\nname = 'a'\nsize = '1m'\n[[open]]\nname = 'a'\n\
            file = 'a'\n[[thread]]\n[[thread.phase]]\nopen = 'a'\n\
            workload = 'read-sequential'\naccesses = 1\n";
        let counters =
            Counters { data_pages_read: Some(1234), major_faults: Some(5), ..Counters::default() };
        let file = |number| FileRun {
            hole_pages: 0,
            name: format!("f{number}"),
            data_pages_read: Some(1000 + number),
            major_faults: Some(0),
            evicted_pages: Some(0),
            cached: Some(7),
            cached_parts: None,
        };
        let run = Run {
            elapsed_ns: Some(3_000_000),
            counters,
            files: (0..files as u64).map(file).collect(),
            ..Run::default()
        };
        let program = JobSpec::from_toml(text).unwrap().validate(None).unwrap();
        let (engine, environment) = (EngineKind::Model, Map::new());
        Record::from_job_runs(&program, JobRuns { engine, environment, runs: vec![run] })
    }

    #[test]
    fn files_are_rows() {
        assert_eq!(
            files(&record(2)).text(),
            "file  pages read  major faults  evicted  cached\n\
             ----  ----------  ------------  -------  ------\n\
             f0          1000             0        0       7\n\
             f1          1001             0        0       7\n"
        );
    }

    #[test]
    fn separates_threads() {
        let mut run = record(1).runs.remove(0);
        assert_eq!(threads(&run).rows.len(), 0);
        for name in ["1", "scan"] {
            let (name, counters) = (name.to_string(), run.counters);
            run.threads.push(ThreadRun { name, elapsed_ns: Some(3_000_000), counters });
        }
        assert_eq!(
            threads(&run).text(),
            "thread  accesses  pages read  major faults  minor faults     ms\n\
             ------  --------  ----------  ------------  ------------  -----\n\
             1                       1234             5                3.000\n\
             scan                    1234             5                3.000\n"
        );
    }

    #[test]
    fn many_files_are_left_to_json() {
        let table = files(&record(100));
        assert_eq!(table.rows.len(), MAX_ROWS + 1);
        assert_eq!(table.rows[MAX_ROWS][0], "and 60 more (in JSON)");
    }
}
