//! `filemap conform`, which needs root and tracepoints to compare.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::running::Running;
use crate::skip::skip;
use crate::{Scratch, filemap, stderr};

const JOB: &str = "conform --workload random --accesses 20 --file-size 2m --map-shift 3";

/// The report of a command that must exit with `code`; `None` if this machine cannot run it.
fn report(args: &str, code: i32) -> Option<Value> {
    let output = filemap(&format!("{args} --json -")).output().expect("the command starts");
    if output.status.code() == Some(4) {
        skip(stderr(&output));
        return None;
    }
    assert_eq!(output.status.code(), Some(code), "{args}: {}", stderr(&output));
    Some(serde_json::from_slice(&output.stdout).expect("one JSON object"))
}

#[test]
fn a_job_agrees() {
    let Some(report) = report(JOB, 0) else { return };
    assert_eq!((&report["schema"], report["patterns"].as_array().unwrap().len()), (&2.into(), 1));
    let pattern = &report["patterns"][0];
    assert_eq!((&pattern["mismatches"], &pattern["ok"]), (&0.into(), &true.into()));
    assert_eq!((&pattern["name"], &pattern["first_mismatch"]), (&"job".into(), &Value::Null));
    assert!(pattern["decisions"].as_u64() >= pattern["readahead_calls"].as_u64());
    assert!(pattern["readahead_calls"].as_u64() > Some(0));
    let command = report["command"].as_str().unwrap();
    assert!(command.starts_with("filemap conform "), "{command}");
    assert!(command.contains("--workload random"), "{command}");
}

/// What a kernel that is said to have a series does without it is found on the running kernel, as
/// on a booted one. A kernel that has the series agrees.
#[test]
fn series_of_the_running_kernel_are_compared() {
    let args = "conform --with mmap-miss --pattern 'random, 64 KiB' --json -";
    let words = ["conform", "--with", "mmap-miss", "--pattern", "random, 64 KiB", "--json", "-"];
    let output = filemap("").args(words).output().expect("the command starts");
    if output.status.code() == Some(4) {
        return skip(stderr(&output));
    }
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    if report["patterns"][0]["ok"] == true {
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{args}: {}", stderr(&output));
    assert_eq!(report["likeness"]["does"], serde_json::json!(["baseline"]), "{report}");
}

#[test]
fn a_file_has_the_readahead_of_where_it_lies() {
    let scratch = Scratch::new("conform-file");
    let path = scratch.file("file", vec![1; 4 << 20]);
    let job = format!("conform --workload random --accesses 20 --cold --file {path}");
    let Some(report) = report(&job, 0) else { return };
    let again = report["command"].as_str().unwrap().strip_prefix("filemap ").unwrap();
    assert!(again.contains(&format!("--file {path}")), "{again}");
    let command = format!("{job} --read-ahead-kb 52");
    let refused = Running::start(&mut filemap(&command)).output();
    assert_eq!(refused.status.code(), Some(4), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("a readahead of 52 KiB"), "{}", stderr(&refused));
}

/// Drops a file from the page cache repeatedly.
const INTRUDER: &str = "while :; do dd if=$0 iflag=nocache count=0 2>/dev/null; done";

#[test]
#[ignore = "races with another process on purpose: a run may slip through"]
fn names_disturbed_pattern() {
    let scratch = Scratch::new("conform-disturbed");
    let path = scratch.file("file", vec![1; 4 << 20]);
    let json = scratch.path("report.json");
    let job =
        format!("conform --workload random --accesses 400 --cold --file {path} --json {json}");
    let mut shell = Command::new("sh");
    let intruder = Running::start(shell.args(["-c", INTRUDER, &path]).stdin(Stdio::null()));
    let output = Running::start(&mut filemap(&job)).output();
    drop(intruder);
    if output.status.success() {
        skip("a run went by between two visits");
        return;
    }
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let message = stderr(&output);
    if !message.contains("1 of 1 patterns were not compared") {
        skip(message);
        return;
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("1 pattern, 1 not compared, 0 decisions,"), "{text}");
    let report: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let pattern = &report["patterns"][0];
    assert_eq!((&pattern["ok"], &pattern["mismatches"]), (&Value::Null, &0.into()));
    assert!(pattern["not_compared"].as_str().unwrap().contains("12 runs"), "{pattern}");
}

#[test]
fn other_rules_disagree() {
    // Large folios of streams on ext4 are newer than 6.12.
    let job = "conform --kernel 6.12 --workload sequential --accesses 500 --file-size 4m";
    let Some(report) = report(job, 1) else { return };
    let pattern = &report["patterns"][0];
    assert!(pattern["mismatches"].as_u64() > Some(0));
    let first = &pattern["first_mismatch"];
    assert!(!first["before"].as_array().unwrap().is_empty());
    assert_ne!(first["model"][0], first["kernel"][0]);
    let text = filemap(job).output().expect("the command starts").stdout;
    let text = String::from_utf8(text).unwrap();
    for words in [
        "'job', as the job file below, differs in access ",
        "  kernel  ",
        "\nworkload = \"sequential\"",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn random_patterns_agree() {
    let Some(report) = report("conform --fuzz 5 --seed 7", 0) else { return };
    let patterns = report["patterns"].as_array().unwrap();
    assert_eq!(patterns.len(), 5);
    assert_eq!(patterns[4]["name"], "random 7/4");
    assert_eq!(report["command"], "filemap conform --fuzz 5 --seed 7");
    // The job of a pattern works as a job file. Some need XFS, which may not be installed.
    let ran = patterns.iter().find(|own| own["left_out"].is_null()).expect("some need ext4 alone");
    let scratch = Scratch::new("conform");
    let path = scratch.file("job.toml", ran["job"].as_str().unwrap());
    let again = self::report(&format!("conform {path}"), 0).expect("it ran before");
    assert_eq!(again["patterns"][0]["decisions"], ran["decisions"]);
}
