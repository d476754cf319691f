//! What a program did: in all, and by file, mapping and phase.

use filemap_core::rules::Kernel;
use filemap_job::program::{PhaseRun, ProgramRecord, ProgramRun, ThreadRun};
use filemap_job::{Counters, EngineKind, Spread};
use serde::Serialize;
use serde_json::Value;

use crate::explain::ProgramHistory;
use crate::footer::Footer;
use crate::report::{Part, Report, in_one_line, to_json};
use crate::table::{Column, Table};
use crate::units::{number, time};
use crate::waits;

/// The report as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Json<'a> {
    #[serde(flatten)]
    record: &'a ProgramRecord,
    /// The course of the first run, in the model; null on a kernel.
    #[serde(serialize_with = "in_one_line")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<ProgramHistory>"))]
    history: Option<&'a ProgramHistory>,
    scope: &'a str,
    command: &'a str,
}

/// The report on `record`, which `command` repeats. `history` is that of its first run.
pub fn report(record: &ProgramRecord, history: Option<&ProgramHistory>, command: String) -> Report {
    let environment = record.environment.clone();
    let footer = Footer { scope: scope(record), command, environment };
    let json = to_json(&Json { record, history, scope: &footer.scope, command: &footer.command });
    let run = &record.run;
    let tables = [in_all(record), files(record), mappings(run), threads(run), phases(run)];
    let tables = tables.into_iter().filter(|table| !table.rows.is_empty()).map(Part::Table);
    let mut parts: Vec<Part> = [Part::Heading(title(record))].into_iter().chain(tables).collect();
    if record.program.thread.iter().any(|thread| thread.count > Some(1)) {
        let text = "Of a table that stands for several threads, phases have the time of all of \
                    them together.";
        parts.push(Part::Paragraph(text.to_string()));
    }
    if record.runs.len() > 1 {
        let text = "The first two tables are of all runs, with the median and, where runs differ, \
                    the range; the others are of the first run.";
        parts.push(Part::Paragraph(text.to_string()));
    }
    if !run.waits.is_empty() {
        let title = match record.engine == EngineKind::Model.name() {
            true => "Where the time of the threads went",
            false => "What the threads waited for",
        };
        parts.push(Part::Table(waits::table(title, &run.waits)));
    }
    if let Some(ns) = run.traced_ns {
        let told = time(ns as f64);
        let text =
            format!("Waits are those of the first {told}: the trace's buffer was full then.");
        parts.push(Part::Paragraph(text));
    }
    parts.extend(Part::warnings(&record.warnings));
    parts.extend(foreign(record));
    Report { parts, rows: rows(run), footer, json }
}

pub(crate) fn scope(record: &ProgramRecord) -> String {
    let own = record.environment.get("scope").and_then(Value::as_str);
    let kernel = record.program.kernel.as_deref().unwrap_or(Kernel::V6_18.name());
    let rules =
        (record.engine == EngineKind::Model.name()).then(|| format!("rules of Linux {kernel}"));
    rules.as_deref().into_iter().chain(own).collect::<Vec<_>>().join(", ")
}

/// `2 files`.
pub(crate) fn files_of(record: &ProgramRecord) -> String {
    let count: u64 = record.program.file.iter().map(|file| file.count.unwrap_or(1)).sum();
    match count {
        1 => "1 file".to_string(),
        files => format!("{files} files"),
    }
}

/// `program of 2 files, baseline, on the model`.
pub(crate) fn title(record: &ProgramRecord) -> String {
    let files = files_of(record);
    let series = record.program.with.as_deref().unwrap_or("baseline");
    format!("program of {files}, {series}, on the {}", record.engine)
}

/// The values of a run or a phase, with the time.
fn values(
    counters: &Counters,
    elapsed_ns: Option<u64>,
) -> impl Iterator<Item = (&'static str, Option<u64>)> {
    let counters: Vec<_> = counters.iter().map(|(name, value)| (name, *value)).collect();
    counters.into_iter().chain([("elapsed_ns", elapsed_ns)])
}

fn count(value: u64) -> String {
    number(value as f64)
}

fn known(value: Option<u64>) -> String {
    value.map_or_else(String::new, count)
}

/// What is to be said of runs that somebody else's eviction has disturbed.
fn foreign(record: &ProgramRecord) -> Option<Part> {
    let kept = record.environment.get("runs_kept_with_foreign_eviction")?.as_u64()?;
    let runs = record.all_runs().len();
    (kept > 0).then(|| {
        Part::Paragraph(format!(
            "Warning: in {kept} of {runs} runs somebody else took pages of the files from the \
             cache."
        ))
    })
}

fn in_all(record: &ProgramRecord) -> Table {
    let summary = &record.summary;
    let values = summary.counters.iter().map(|(name, spread)| (name, *spread));
    let values = values.chain([("elapsed_ns", summary.elapsed_ns)]);
    let row = |(name, spread): (&str, Option<Spread>)| {
        Some(vec![name.to_string(), of_runs(Some(spread?))])
    };
    Table {
        title: String::new(),
        columns: vec![Column::left("counter"), Column::right("value")],
        rows: values.filter_map(row).collect(),
    }
}

/// More rows than this are left to CSV and JSON.
pub(crate) const MAX_ROWS: usize = 40;

/// A median, with the range where there is one; nothing where no run says.
pub(crate) fn of_runs(spread: Option<Spread>) -> String {
    spread.map_or(String::new(), |Spread { median, min, max, .. }| match min == max {
        true => number(median),
        false => format!("{} ({} to {})", number(median), count(min), count(max)),
    })
}

fn files(record: &ProgramRecord) -> Table {
    let heads = ["pages read", "major faults", "evicted", "cached"].map(Column::right);
    let rows = record.summary.files.iter().map(|file| {
        let counts = [file.data_pages_read, file.major_faults, file.evicted_pages, file.cached];
        [file.name.clone()].into_iter().chain(counts.map(of_runs)).collect()
    });
    table("file", heads, rows)
}

fn mappings(run: &ProgramRun) -> Table {
    let heads = ["accesses", "pages read", "major faults", "minor faults"].map(Column::right);
    let rows = run.mappings.iter().map(|mapping| {
        let Counters { accesses, data_pages_read, major_faults, minor_faults, .. } =
            mapping.counters;
        let counts = [accesses, data_pages_read, major_faults, minor_faults];
        [mapping.name.clone()].into_iter().chain(counts.map(known)).collect()
    });
    table("mapping", heads, rows)
}

/// A table by thread, where there are several.
fn threads(run: &ProgramRun) -> Table {
    let heads = ["accesses", "pages read", "major faults", "minor faults", "ms"];
    let rows = run.threads.iter().map(|thread| {
        let ThreadRun { name, elapsed_ns, counters } = thread;
        let Counters { accesses, data_pages_read, major_faults, minor_faults, .. } = *counters;
        let counts = [accesses, data_pages_read, major_faults, minor_faults].map(known);
        [name.clone()].into_iter().chain(counts).chain([milliseconds(*elapsed_ns)]).collect()
    });
    let several = if run.threads.len() > 1 { rows.len() } else { 0 };
    table("thread", heads.map(Column::right), rows.take(several))
}

fn milliseconds(ns: Option<u64>) -> String {
    ns.map_or(String::new(), |ns| format!("{:.3}", ns as f64 / 1e6))
}

fn phases(run: &ProgramRun) -> Table {
    let heads = ["pages read", "major faults", "evicted", "ms"].map(Column::right);
    let rows = run.phases.iter().enumerate().map(|(index, phase)| {
        let PhaseRun { thread, does, elapsed_ns, counters } = phase;
        let counts = [counters.data_pages_read, counters.major_faults, counters.evicted_pages];
        let name = match run.threads.len() {
            0 | 1 => format!("{}. {does}", index + 1),
            _ => format!("{}. {thread}: {does}", index + 1),
        };
        let ms = milliseconds(*elapsed_ns);
        [name].into_iter().chain(counts.map(known)).chain([ms]).collect()
    });
    table("phase", heads, rows)
}

fn table<const N: usize>(
    of: &str,
    heads: [Column; N],
    rows: impl ExactSizeIterator<Item = Vec<String>>,
) -> Table {
    let left_out = rows.len().saturating_sub(MAX_ROWS);
    let mut rows: Vec<Vec<String>> = rows.take(MAX_ROWS).collect();
    if left_out > 0 {
        let mut last = vec![String::new(); N + 1];
        last[0] = format!("and {left_out} more (in JSON)");
        rows.push(last);
    }
    let columns = [Column::left(of)].into_iter().chain(heads).collect();
    Table { title: String::new(), columns, rows }
}

/// One row for each phase.
fn rows(run: &ProgramRun) -> Table {
    let row = |(index, phase): (usize, &PhaseRun)| {
        let values = values(&phase.counters, phase.elapsed_ns);
        let values = values.map(|(_, value)| value.map_or(String::new(), |v| v.to_string()));
        let named = [(index + 1).to_string(), phase.thread.clone(), phase.does.clone()];
        named.into_iter().chain(values).collect()
    };
    let nothing = Counters::default();
    let names = values(&nothing, None).map(|(name, _)| name);
    Table {
        title: String::new(),
        columns: ["number", "thread", "phase"].into_iter().chain(names).map(Column::left).collect(),
        rows: run.phases.iter().enumerate().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::program::FileRun;
    use filemap_job::{EngineKind, ProgramSpec, Ran};
    use serde_json::Map;

    use super::*;

    fn record(files: usize) -> ProgramRecord {
        let text = "with = 'p1'\n[[file]]\nname = 'a'\nsize = '1m'\n[[open]]\nname = 'a'\n\
            file = 'a'\n[[thread]]\n[[thread.phase]]\nopen = 'a'\n\
            workload = 'read-sequential'\naccesses = 1\n";
        let counters =
            Counters { data_pages_read: Some(1234), major_faults: Some(5), ..Counters::default() };
        let file = |number| FileRun {
            name: format!("f{number}"),
            data_pages_read: Some(1000 + number),
            major_faults: Some(0),
            evicted_pages: Some(0),
            cached: Some(7),
            cached_parts: None,
        };
        let phase = PhaseRun {
            thread: "1".to_string(),
            does: "read a: read-sequential".to_string(),
            elapsed_ns: Some(2_500_000),
            counters,
        };
        let run = ProgramRun {
            elapsed_ns: Some(3_000_000),
            counters,
            files: (0..files as u64).map(file).collect(),
            phases: vec![phase],
            ..ProgramRun::default()
        };
        let program = ProgramSpec::from_toml(text).unwrap().validate(None).unwrap();
        let (engine, environment) = (EngineKind::Model, Map::new());
        ProgramRecord::of(&program, Ran { engine, environment, runs: vec![run] })
    }

    #[test]
    fn a_program_by_file_and_phase() {
        let report = report(&record(2), None, "filemap run p.toml".to_string());
        let tables = report.parts.iter().map(|part| match part {
            Part::Heading(text) => text.clone(),
            Part::Table(table) => table.text(),
            other => panic!("{other:?}"),
        });
        let expected = [
            "program of 1 file, p1, on the model",
            "counter              value\n---------------  ---------\n\
             data_pages_read       1234\nmajor_faults             5\n\
             elapsed_ns       3 000 000\n",
            "file  pages read  major faults  evicted  cached\n\
             ----  ----------  ------------  -------  ------\n\
             f0          1000             0        0       7\n\
             f1          1001             0        0       7\n",
            "phase                       pages read  major faults  evicted     ms\n\
             --------------------------  ----------  ------------  -------  -----\n\
             1. read a: read-sequential        1234             5           2.500\n",
        ];
        assert_eq!(tables.collect::<Vec<_>>(), expected);
        let json: Value = serde_json::from_str(&report.json).unwrap();
        assert_eq!(json["run"]["files"][1]["data_pages_read"], 1001);
        assert_eq!(json["program"]["open"][0]["file"], "a");
        assert_eq!(report.rows.rows.len(), 1);
    }

    #[test]
    fn several_threads_are_told_apart() {
        let ProgramRecord { mut run, .. } = record(1);
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
        assert_eq!(phases(&run).rows[0][0], "1. 1: read a: read-sequential");
        assert_eq!(rows(&run).rows[0][1], "1");
    }

    #[test]
    fn many_files_are_left_to_json() {
        let table = files(&record(100));
        assert_eq!(table.rows.len(), MAX_ROWS + 1);
        assert_eq!(table.rows[MAX_ROWS][0], "and 60 more (in JSON)");
    }
}
