//! Where a process cannot keep its statistics, reports say that nothing is known of it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output};

use serde_json::Value;

use crate::governed::Place;
use crate::running::Running;
use crate::{can_change_mounts, schema, skip, stderr};

/// What `--json` wrote to `path`, in which nothing was governed as far as is known.
fn report(path: &str, output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    let report: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    schema::check("govern", &report);
    schema::check_closed("govern", &report);
    assert_eq!(report["totals"]["mappings"], 0, "{report}");
    report
}

/// `report` says that nothing is known of one process, for a reason with `words`.
fn says(report: &Value, words: &str) {
    let unknown = report["unknown"].as_array().unwrap();
    assert_eq!(unknown.len(), 1, "{report}");
    assert!(unknown[0]["reason"].as_str().unwrap().contains(words), "{report}");
    assert!(unknown[0]["pid"].as_u64().unwrap() > 1, "{report}");
}

#[test]
fn small_files_are_told() {
    let place = Place::new("govern_small_files");
    let [program, data] = place.lookups();
    let path = place.scratch.path("report");
    let script = format!("ulimit -f 1; {program} {data} 20; :");
    let output = place.script(&format!("--json {path}"), &script).output().unwrap();
    says(&report(&path, &output), "ulimit -f");
    let args = format!("--compare --runs 1 --json {path}");
    let output = place.script(&args, &script).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(line.contains("Nothing is known of a process of the governed program"), "{text}");
    assert!(line.contains("it is not known which were governed"), "{text}");
    assert!(!line.contains("No file of this program was governed"), "{text}");
    let report: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    schema::check_closed("govern-compare", &report);
    says(&report, "ulimit -f");
    assert_eq!(report["ungoverned"], Value::Null);
    // While it runs.
    let script = format!("ulimit -f 1; exec {program} {data} 20 wait");
    let mut running = Running::start(&mut place.script("", &script));
    let lines = BufReader::new(running.stdout()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "ready"));
    let output = place.filemap(&format!("--status {}", running.id())).output().unwrap();
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(4), 1), "{message}");
    assert!(message.contains("nothing is known of it: its limit of file sizes"), "{message}");
}

#[test]
fn another_user_is_told() {
    let place = Place::new("govern_other_user");
    let [program, data] = place.lookups();
    let path = place.scratch.path("report");
    let as_other = "setpriv --reuid=65534 --clear-groups";
    let alone = format!("{as_other} {program} {data} 1");
    let alone = Command::new("sh").args(["-c", &alone]).output().unwrap();
    if !alone.status.success() {
        return skip("only root changes users, and the directory is to be seen by others");
    }
    let args = format!("--json {path} -- {as_other} {program} {data} 20");
    let output = place.filemap(&args).output().unwrap();
    says(&report(&path, &output), "change of its user");
    let args = format!("-- {as_other} {program} {data} 20 wait");
    let mut running = Running::start(&mut place.filemap(&args));
    let lines = BufReader::new(running.stdout()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "ready"));
    let output = place.filemap(&format!("--status {}", running.id())).output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(message.contains("nothing is known of it: it may not write"), "{message}");
}

#[test]
fn a_full_disk_is_told() {
    if !can_change_mounts() {
        return;
    }
    let place = Place::new("govern_full");
    let [program, data] = place.lookups();
    let [path, run] = ["report", "run"].map(|name| place.scratch.path(name));
    let script = format!(
        "mount -t tmpfs -o size=64k none {run} &&
         exec {} govern --json {path} -- {program} {data} 20",
        place.scratch.path("filemap")
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).env("XDG_RUNTIME_DIR", &run);
    let output = command.output().unwrap();
    says(&report(&path, &output), "there is no room");
}
