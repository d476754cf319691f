//! `--export`: the events of a recording as a table, and a run as a timeline.

use std::fs;
use std::process::Command;

use filemap_recording::RecordingMode;
use serde_json::{Value, json};

use crate::recordings::recording;
use crate::{Scratch, filemap, json, stderr, stdout};

/// The recording of 500 touches and 500 reads, at a path in `scratch`.
fn recorded(scratch: &Scratch) -> String {
    scratch.file("r", recording(RecordingMode::Changes, "/nowhere/data, \"1\".bin", true))
}

#[test]
fn events_are_rows_of_csv() {
    let scratch = Scratch::new("export_csv");
    let taken = recorded(&scratch);
    let printed = stdout(&format!("report {taken} --export -"));
    let path = scratch.path("touches.csv");
    assert_eq!(stdout(&format!("report {taken} --export {path}")), "");
    assert_eq!(fs::read_to_string(&path).unwrap(), printed);
    let rows: Vec<&str> = printed.lines().collect();
    // Two opens and a mapping besides.
    assert_eq!(rows.len(), 1 + 2 + 1 + 1000);
    let file = "\"/nowhere/data, \"\"1\"\".bin\"";
    assert_eq!(
        rows[..8],
        [
            "process,thread,kind,file,mapping,open,offset_bytes,length_bytes,advice,time_ns,wait_ns",
            &format!("7,7,open,{file},,0,,,,0,0"),
            &format!("7,7,open,{file},,1,,,,0,0"),
            &format!("7,7,map,{file},0,0,0,67108864,,0,0"),
            &format!("7,7,touch,{file},0,0,0,4096,,896,896"),
            &format!("7,8,read,{file},,1,0,4096,,96,96"),
            &format!("7,7,touch,{file},0,0,32436224,4096,,1792,896"),
            &format!("7,8,read,{file},,1,131072,4096,,208,112"),
        ]
    );
}

#[test]
fn a_cut_recording_is_exported_up_to_there() {
    let scratch = Scratch::new("export_cut");
    let cut = scratch.file("cut", recording(RecordingMode::Changes, "/nowhere/d", false));
    let output = filemap(&format!("report {cut} --export -")).output().unwrap();
    assert!(output.status.success());
    assert!(stderr(&output).contains("is cut off at byte"), "{}", stderr(&output));
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 1004);
}

#[test]
fn wrong_exports_are_one_line_errors() {
    let scratch = Scratch::new("export_wrong");
    let taken = recorded(&scratch);
    let foreign = scratch.file("record.json", "{}");
    let timeline = scratch.path("t.json");
    let run = format!("run --workload first --file-size 1m --export {timeline}");
    for (args, code, words) in [
        (format!("report {taken} --export touches.txt"), 2, "ends in .csv or .parquet"),
        (format!("report {foreign} --export -"), 2, "give what filemap record wrote"),
        ("report /nowhere --export -".to_string(), 2, "'/nowhere' cannot be read"),
        (format!("report {taken} --export - --html -"), 2, "cannot be used with"),
        (format!("report {taken}"), 2, "--html"),
        (format!("report {taken} --html -"), 2, "export its events with --export"),
        ("run --workload first --file-size 1m --export t.pb".to_string(), 2, "ends in .json"),
        (format!("{run} --seeds 2"), 2, "leave out --seeds"),
        (format!("{run} --on kernel"), 4, "give --on model"),
        #[cfg(not(feature = "parquet"))]
        (format!("report {taken} --export t.parquet"), 4, "--features parquet"),
    ] {
        let output = filemap(&args).output().unwrap();
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args}: {error}");
        assert!(error.contains(words), "{args}: {error}");
        assert_eq!(error.lines().count(), 1, "{args}: {error}");
    }
}

/// Compares the Parquet file with the CSV file: numbers of rows, and sums by kind.
#[cfg(feature = "parquet")]
const COMPARE: &str = r#"
import csv, sys, duckdb, pyarrow.parquet
csv_path, parquet_path = sys.argv[1:]
kinds = {}
def add(kind, offset, length, time, wait):
    sums = kinds.setdefault(kind, [0, 0, 0, 0, 0])
    for at, number in enumerate([1, offset, length, time, wait]):
        sums[at] += int(number or 0)
for row in csv.DictReader(open(csv_path)):
    add(row["kind"], row["offset_bytes"], row["length_bytes"], row["time_ns"], row["wait_ns"])
expected, kinds = kinds, {}
table = pyarrow.parquet.read_table(parquet_path)
for row in table.to_pylist():
    add(row["kind"], row["offset_bytes"], row["length_bytes"], row["time_ns"], row["wait_ns"])
assert kinds == expected, (kinds, expected)
assert table.schema.names == next(csv.reader(open(csv_path))), table.schema
rows = duckdb.sql(f"""select kind, count(*), coalesce(sum(offset_bytes), 0),
    coalesce(sum(length_bytes), 0), sum(time_ns), sum(wait_ns) from '{parquet_path}'
    group by kind""").fetchall()
assert {row[0]: [int(number) for number in row[1:]] for row in rows} == expected, rows
files = duckdb.sql(f"select distinct file from '{parquet_path}'").fetchall()
assert files == [('/nowhere/data, "1".bin',)], files
print(table.num_rows)
"#;

#[cfg(feature = "parquet")]
#[test]
#[ignore = "needs pyarrow and DuckDB for Python, which .ci/run installs"]
fn parquet_opens_in_pyarrow_and_duckdb() {
    let python = crate::test_python();
    let found = Command::new(&python).args(["-c", "import duckdb, pyarrow"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        return crate::skip(format!("{python} has no pyarrow and DuckDB"));
    }
    let scratch = Scratch::new("export_parquet");
    let taken = recorded(&scratch);
    let (csv, parquet) = (scratch.path("t.csv"), scratch.path("t.parquet"));
    stdout(&format!("report {taken} --export {csv}"));
    stdout(&format!("report {taken} --export {parquet}"));
    let output = Command::new(&python).args(["-c", COMPARE, &csv, &parquet]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(output.stdout, b"1003\n");
}

/// Threads that fault, read and wait for memory and CPUs, one of them with O_DIRECT.
const THREADS: &str = "memory_max = '8m'\ncpus = 2\n[[file]]\nname = 'a'\nsize = '64m'\n\
    [[open]]\nname = 'a'\nfile = 'a'\n[[open]]\nname = 'direct'\nfile = 'a'\ndirect = true\n\
    [[mapping]]\nname = 'a'\nopen = 'a'\n[[thread]]\nname = 'look-ups'\ncount = 3\n\
    [[thread.phase]]\nmapping = 'a'\nworkload = 'random'\naccesses = 300\n\
    [[thread.phase]]\nmapping = 'a'\nmadvise = 'random'\n\
    [[thread.phase]]\nmapping = 'a'\nworkload = 'random'\naccesses = 200\n\
    [[thread]]\nname = 'scan'\n[[thread.phase]]\nopen = 'a'\n\
    workload = 'read-sequential'\nbs = '64k'\naccesses = 200\n\
    [[thread.phase]]\nopen = 'direct'\nworkload = 'read-random'\nbs = '4k'\naccesses = 50\n";

/// What "Trace Event Format" asks of the kinds of events that are used.
fn trace_schema() -> Value {
    let kind = |ph: &str, required: &[&str]| json!({ "properties": { "ph": { "const": ph } }, "required": required });
    let number = json!({ "type": "number", "minimum": 0 });
    let index = json!({ "type": "integer", "minimum": 0 });
    let event = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" }, "cat": { "type": "string" },
            "ts": number, "dur": number, "pid": index, "tid": index,
            "s": { "enum": ["g", "p", "t"] },
            "args": { "type": "object" },
        },
        "oneOf": [
            { "maxProperties": 0 },
            kind("X", &["name", "cat", "ts", "dur", "pid", "tid"]),
            kind("i", &["name", "ts", "pid", "tid", "s"]),
            kind("C", &["name", "ts", "pid", "args"]),
            kind("M", &["name", "pid", "args"]),
        ],
    });
    json!({
        "type": "object",
        "properties": {
            "displayTimeUnit": { "enum": ["ms", "ns"] },
            "traceEvents": { "type": "array", "items": event },
        },
        "required": ["traceEvents"],
    })
}

/// A time in nanoseconds.
fn ns(event: &Value, key: &str) -> u64 {
    (event[key].as_f64().unwrap() * 1000.0).round() as u64
}

#[test]
fn timelines_show_what_the_record_counts() {
    let scratch = Scratch::new("export_timeline");
    let job = scratch.file("threads.toml", THREADS);
    let record = json(&format!("run {job} --json -"));
    let trace = json(&format!("run {job} --export -"));
    jsonschema::validator_for(&trace_schema()).unwrap().validate(&trace).unwrap();
    let events: Vec<&Value> = trace["traceEvents"].as_array().unwrap().iter().collect();
    let named = |name: &str| {
        let events = events.iter().filter(move |event| event["name"] == name);
        events.copied().collect::<Vec<&Value>>()
    };
    let run = &record["runs"][0];
    let counters = &run["counters"];
    assert_eq!(counters["major_faults"], named("major fault").len());
    assert_eq!(counters["minor_faults"], named("minor fault").len());
    assert_eq!(named("read").len(), 250);
    let windows = events.iter().filter(|event| event["ph"] == "i");
    let windows = windows.filter(|event| event["name"].as_str().unwrap().starts_with("window"));
    assert_eq!(counters["readahead_calls"], windows.count());
    let names: Vec<&Value> =
        named("thread_name").iter().map(|event| &event["args"]["name"]).collect();
    assert_eq!(names, ["look-ups-1", "look-ups-2", "look-ups-3", "scan"]);
    // Spans of a thread nest, and end with the run.
    for tid in 1..=4 {
        let spans = events.iter().filter(|event| event["ph"] == "X" && event["tid"] == tid);
        let mut spans: Vec<(u64, u64)> = spans
            .map(|span| (ns(span, "ts"), ns(span, "ts") + ns(span, "dur")))
            .filter(|(from, until)| from < until)
            .collect();
        spans.sort_by_key(|(from, until)| (*from, std::cmp::Reverse(*until)));
        let mut open: Vec<u64> = Vec::new();
        for (from, until) in spans {
            open.retain(|end| *end > from);
            assert!(open.iter().all(|end| *end >= until), "{tid}: {from} to {until} in {open:?}");
            open.push(until);
            assert!(until <= run["elapsed_ns"].as_u64().unwrap());
        }
    }
    let in_flight: Vec<i64> = named("requests in flight")
        .iter()
        .map(|event| event["args"]["requests"].as_i64().unwrap())
        .collect();
    assert!(in_flight.iter().all(|requests| *requests >= 0), "{in_flight:?}");
    assert!(in_flight.iter().any(|requests| *requests > 1), "{in_flight:?}");
    assert_eq!(in_flight.last(), Some(&0));
    // The log has the same times.
    let log = stdout(&format!("run {job} --log -"));
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first = lines.iter().find(|line| line["decision"] == "readahead").unwrap();
    let window = events.iter().find(|event| event["ph"] == "i").unwrap();
    assert_eq!(first["at_ns"], ns(window, "ts"));
    assert_eq!(first["thread"].as_u64().unwrap() + 1, window["tid"].as_u64().unwrap());
}

/// Counts what Perfetto's own importer reads.
const QUERY: &str = r#"
import sys
from perfetto.trace_processor import TraceProcessor
trace = TraceProcessor(trace=sys.argv[1])
def count(query): return next(iter(trace.query(query))).n
print(count("select count(*) n from slice where name = 'major fault'"),
    count("select count(*) n from thread where name = 'scan'"),
    count("select count(*) n from counter_track where name like 'requests in flight%'"),
    count("select count(*) n from stats where severity = 'error' and value > 0"))
"#;

#[test]
#[ignore = "needs Perfetto's trace processor, which its Python package downloads"]
fn perfetto_opens_a_timeline() {
    let python = crate::test_python();
    let works = "from perfetto.trace_processor import TraceProcessor as T; T(trace='/dev/null')";
    let found = Command::new(&python).args(["-c", works]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        return crate::skip(format!("{python} has no trace processor of Perfetto"));
    }
    let scratch = Scratch::new("export_perfetto");
    let job = scratch.file("threads.toml", THREADS);
    let path = scratch.path("trace.json");
    stdout(&format!("run {job} --export {path}"));
    let record = json(&format!("run {job} --json -"));
    let output = Command::new(&python).args(["-c", QUERY, &path]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let majors = &record["runs"][0]["counters"]["major_faults"];
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{majors} 1 1 0\n"));
}
