//! `filemap calibrate`, on the smallest file that it takes.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use crate::running::Running;
use crate::skip::skip;
use crate::{Scratch, filemap, has_disk, stderr};

const SMALL: &str = "--file-size 64m --runs 1";

/// The command with its temporary files and journals in `scratch`.
fn in_scratch(scratch: &Scratch, args: &str) -> Command {
    for directory in ["state", "temporary"] {
        fs::create_dir_all(scratch.path(directory)).expect("the target directory can be written");
    }
    let mut command = filemap(args);
    command.env("FILEMAP_STATE", scratch.path("state")).env("TMPDIR", scratch.path("temporary"));
    command
}

fn left(scratch: &Scratch, directory: &str) -> Vec<String> {
    let entries = fs::read_dir(scratch.path(directory)).expect("it was made before");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("it can be listed").file_name().to_string_lossy().into_owned()
    };
    entries.map(name).collect()
}

#[track_caller]
fn fails(output: &Output, code: i32, words: &[&str]) {
    let message = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert_eq!(message.matches('\n').count(), 1, "{message}");
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    assert!(output.stdout.is_empty(), "{message}");
}

#[test]
fn a_profile_comes_out_that_the_model_takes() {
    let scratch = Scratch::new("calibrate");
    let profile = scratch.file("profile.toml", "what was there before");
    let report = scratch.path("report.json");
    let args = format!("calibrate {profile} {SMALL} --json {report}");
    let output = Running::start(&mut in_scratch(&scratch, &args)).output();
    assert_eq!(left(&scratch, "temporary"), [""; 0]);
    assert!(!left(&scratch, "state").iter().any(|name| name.ends_with(".journal")));
    if output.status.code() == Some(4) {
        skip(stderr(&output));
        let kept = fs::read_to_string(&profile).expect("it was there");
        assert_eq!(kept, "what was there before");
        return;
    }
    assert!(output.status.success(), "{}", stderr(&output));
    let read = |path: &str| fs::read_to_string(path).expect("it was written");
    let report: Value = serde_json::from_str(&read(&report)).expect("one JSON object");
    assert!(report["command"].as_str().unwrap().starts_with("filemap calibrate "), "{report}");
    let written: toml::Table = read(&profile).parse().expect("a profile is TOML");
    assert!(written["device"]["latency_ns"].as_integer() > Some(0));
    let job = format!("run --workload random --file-size 1m --machine {profile} --json -");
    let output = Running::start(&mut filemap(&job)).output();
    assert!(output.status.success(), "{}", stderr(&output));
    let record: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let taken = &record["environment"]["profile"];
    for (table, key) in [("device", "latency_ns"), ("device", "io_bytes"), ("cost", "fault_ns")] {
        let value = written[table][key].as_integer();
        assert_eq!(taken[table][key].as_i64(), value, "{table}.{key} in {taken}");
    }
}

#[test]
fn what_is_in_the_way_is_said_before_anything_is_measured() {
    if !has_disk() {
        return;
    }
    let scratch = Scratch::new("calibrate-refused");
    for (args, code, words) in [
        (format!("calibrate {SMALL} /no/such/profile.toml"), 2, &["/no/such", "opened"] as &[&str]),
        (format!("calibrate {SMALL} {}", scratch.path("")), 2, &["opened", "can be written"]),
        ("calibrate --file-size 1m".to_string(), 2, &["--file-size 1m", "64m"]),
        ("calibrate --file-size some".to_string(), 2, &["--file-size", "some"]),
        ("calibrate --runs 0".to_string(), 2, &["--runs 0", "1 to 100"]),
        (format!("calibrate - {SMALL} --json -"), 2, &["the profile", "stdout"]),
        ("calibrate --file-size 512p --runs 1".to_string(), 4, &["no room"]),
    ] {
        fails(&Running::start(&mut in_scratch(&scratch, &args)).output(), code, words);
        assert_eq!(left(&scratch, "temporary"), [""; 0], "{args}");
    }
}

#[test]
fn a_calibration_that_fails_leaves_no_profile() {
    if !has_disk() {
        return;
    }
    let scratch = Scratch::new("calibrate-failed");
    let profile = scratch.path("profile.toml");
    let args = format!("calibrate {profile} --file-size 512p --runs 1");
    fails(&Running::start(&mut in_scratch(&scratch, &args)).output(), 4, &["no room"]);
    assert!(!fs::exists(&profile).expect("it can be asked for"));
}
