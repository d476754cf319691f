//! Programs: job files with tables of files, opens, mappings and threads.

use serde_json::Value;

use crate::{Scratch, filemap, json, stderr, stdout};

/// Two opens of one file beside another file, in a memory that is smaller than both.
pub const PROGRAM: &str = "memory_max = '24m'
anonymous = '1m'
[[file]]
name = 'data'
size = '32m'
[[file]]
name = 'index'
size = '4m'
[[open]]
name = 'scan'
file = 'data'
[[open]]
name = 'index'
file = 'index'
[[mapping]]
name = 'tree'
open = 'index'
advice = 'random'
[[mapping]]
name = 'data'
open = 'scan'
[[thread]]
[[thread.phase]]
mapping = 'tree'
workload = 'random'
accesses = 500
think_ns = 1000
[[thread.phase]]
mapping = 'data'
workload = 'sequential'
accesses = 8192
[[thread.phase]]
open = 'scan'
workload = 'read-sequential'
bs = '64k'
accesses = 100
";

fn file<'a>(record: &'a Value, name: &str) -> &'a Value {
    let files = record["run"]["files"].as_array().unwrap();
    files.iter().find(|file| file["name"] == name).unwrap()
}

#[test]
fn a_program_runs_in_the_model() {
    let scratch = Scratch::new("program");
    let path = scratch.file("program.toml", PROGRAM);
    let record = json(&format!("run {path} --json -"));
    assert_eq!(record["run"]["counters"]["accesses"], 500 + 8192 + 100);
    assert!(file(&record, "data")["data_pages_read"].as_u64() > Some(8192));
    assert!(file(&record, "index")["data_pages_read"].as_u64() < Some(501));
    assert_eq!(record["run"]["phases"][0]["does"], "touch tree: random");
    let text = stdout(&format!("run {path}"));
    for words in ["program of 2 files", "2. touch data: sequential", "mapping", "evicted"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let log = stdout(&format!("run {path} --log -"));
    assert!(log.lines().any(|line| line.contains(r#""decision":"file""#)), "files are told apart");
}

/// A program with an existing file of 40 KiB without blocks, and with advice as steps.
fn of_existing(path: &str) -> String {
    format!(
        "[[file]]\nname = 'data'\npath = '{path}'\n[[open]]\nname = 'o'\nfile = 'data'\n\
         [[mapping]]\nname = 'm'\nopen = 'o'\n[[thread]]\n\
         [[thread.phase]]\nmapping = 'm'\nmadvise = 'willneed'\noffset = '8k'\nlen = '12k'\n\
         [[thread.phase]]\nopen = 'o'\nfadvise = 'dontneed'\n"
    )
}

#[test]
fn an_existing_file_and_advice_as_steps() {
    let scratch = Scratch::new("program_existing");
    let data = scratch.path("data");
    std::fs::File::create(&data).unwrap().set_len(40_960).unwrap();
    let path = scratch.file("program.toml", of_existing(&data));
    let text = stdout(&format!("run {path} --json -"));
    let record: Value = serde_json::from_str(&text).unwrap();
    let phases = &record["run"]["phases"];
    assert_eq!(phases[0]["does"], "madvise m: willneed of 12k from 8k");
    assert_eq!(phases[0]["counters"]["data_pages_read"], 3);
    assert_eq!(phases[0]["counters"]["bytes_read"], 0, "holes are filled without the device");
    assert_eq!(phases[1]["does"], "fadvise o: dontneed");
    assert_eq!(record["run"]["files"][0]["evicted_pages"], 3);

    let missing = scratch.file("missing.toml", of_existing("/nowhere/at/all"));
    let directory = scratch.file("directory.toml", of_existing("/"));
    let twice = format!("[[file]]\nname = 'twin'\npath = '{data}'\n{}", of_existing(&data));
    let twice = scratch.file("twice.toml", &twice);
    for (args, words) in [
        (format!("run {missing}"), "'/nowhere/at/all'"),
        (format!("run {directory}"), "it is a directory"),
        (format!("run {twice}"), "files 'twin' and 'data' are the same file"),
        (format!("run {path} --json {data}"), "the file 'data' of the job file"),
    ] {
        let output = filemap(&args).output().unwrap();
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args}: {error}");
        assert!(error.contains(words), "{args}: {error}");
        assert_eq!(error.lines().count(), 1, "{args}: {error}");
    }
    assert_eq!(std::fs::metadata(&data).unwrap().len(), 40_960, "nothing is written to it");
}

#[test]
fn what_programs_do_not_take_is_told_in_one_line() {
    let scratch = Scratch::new("program_errors");
    let path = scratch.file("program.toml", PROGRAM);
    let behind = PROGRAM.replace("advice = 'random'", "len = '1g'");
    let behind = scratch.file("behind.toml", &behind);
    let unknown = PROGRAM.replace("mapping = 'tree'", "mapping = 'trees'");
    let unknown = scratch.file("unknown.toml", &unknown);
    let cases = [
        (format!("run {path} --seed 3"), "--seed is for a job of one file"),
        (format!("run {path} --seeds 3"), "--seeds is for a job of one file"),
        (format!("compare {path}"), "run it with 'filemap run'"),
        (format!("explain {path}"), "run it with 'filemap run'"),
        (format!("run {behind}"), "gets SIGBUS"),
        (format!("run {unknown}"), "phase 1: unknown mapping 'trees'; known: data, tree"),
        (format!("run {path} --json {path}"), "the job file"),
    ];
    for (args, words) in cases {
        let output = filemap(&args).output().unwrap();
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args}: {error}");
        assert!(error.contains(words), "{args}: {error}");
        assert_eq!(error.lines().count(), 1, "{args}: {error}");
    }
}
