//! `--export`: the events of a recording as a table.

use std::fs;
#[cfg(feature = "parquet")]
use std::process::Command;

use filemap_recording::RecordingMode;

use crate::recordings::recording;
use crate::{Scratch, filemap, stderr, stdout};

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
    for (args, code, words) in [
        (format!("report {taken} --export touches.txt"), 2, "ends in .csv or .parquet"),
        (format!("report {foreign} --export -"), 2, "give what filemap record wrote"),
        ("report /nowhere --export -".to_string(), 2, "'/nowhere' cannot be read"),
        (format!("report {taken} --export - --html -"), 2, "cannot be used with"),
        (format!("report {taken}"), 2, "--html"),
        (format!("report {taken} --html -"), 2, "export its events with --export"),
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
    let python = std::env::var("FILEMAP_TEST_PYTHON").unwrap_or("python3".to_string());
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
