//! `filemap govern --pid` and `--cgroup`: running processes.

use std::fs;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::governed::Place;
use crate::running::{Running, signal};
use crate::{schema, skip, stderr};

/// A program that reads pages of its file at random for some seconds.
fn reader(place: &Place) -> (Running, String) {
    let [program, data] = place.lookups();
    let mut command = Command::new(program);
    let mut running =
        Running::start(command.args([&data, "1000000"]).env("LOOKUPS_PAUSE_US", "100"));
    let pid = running.id();
    assert!(running.reaches(|| !flags(pid, &data).is_empty()));
    (running, data)
}

/// `VmFlags` of the mapping of `data` in process `pid`, from smaps.
fn flags(pid: u32, data: &str) -> String {
    let smaps = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap_or_default();
    let mut lines = smaps.lines().skip_while(|line| !line.ends_with(data));
    lines.find_map(|line| line.strip_prefix("VmFlags:")).unwrap_or_default().to_string()
}

fn parsed(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    let report = serde_json::from_slice(&output.stdout).expect("one JSON object");
    schema::check("govern", &report);
    schema::check_closed("govern", &report);
    report
}

/// The reason why nothing could be governed; prints that this part is skipped.
fn reason(report: &Value) -> Option<&str> {
    let reason = report["processes"][0]["reason"].as_str();
    reason.inspect(|reason| skip(reason))
}

#[test]
fn running_process_is_governed_and_released() {
    let place = Place::new("govern_pid");
    let (running, data) = reader(&place);
    let pid = running.id();
    let before = flags(pid, &data);
    let args = format!("--pid {pid} --duration 1s --json -");
    let report = parsed(&place.filemap(&args).output().unwrap());
    assert_eq!(flags(pid, &data), before);
    if reason(&report).is_none() {
        let mapping = &report["processes"][0]["mappings"][0];
        assert_eq!(
            (mapping["state"].as_str(), mapping["path"].as_str()),
            (Some("given-back"), Some(data.as_str())),
            "{report}"
        );
        assert!(mapping["stopped_ns"].as_u64().unwrap() > 0, "{report}");
    }
    let observed = format!("--observe {args}");
    let report = parsed(&place.filemap(&observed).output().unwrap());
    assert_eq!(
        (&report["only_observed"], &report["totals"]["stopped_ns"]),
        (&Value::Bool(true), &Value::from(0))
    );
    assert!(place.statistics().is_empty());
}

/// Exits cleanly on each usual signal, and when the process exits.
#[test]
fn governing_ends_by_signal_or_process_exit() {
    let place = Place::new("govern_pid_ends");
    let (mut reader, data) = reader(&place);
    let pid = reader.id();
    let before = flags(pid, &data);
    for name in ["INT", "TERM", "HUP"] {
        let mut governor = Running::start(&mut place.filemap(&format!("--pid {pid}")));
        if !governor.reaches(|| flags(pid, &data).contains("rr")) {
            panic!("{name}: {:?}", governor.output());
        }
        governor.signal(name);
        let output = governor.output();
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("given back") && text.contains(&data), "{text}");
        assert_eq!(flags(pid, &data), before, "{name}");
    }
    let governor = Running::start(&mut place.filemap(&format!("--pid {pid}")));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!reader.has_ended());
    reader.signal("KILL");
    let _ = reader.output();
    assert_eq!(governor.output().status.code(), Some(0));
    assert!(place.statistics().is_empty());
}

#[test]
fn releases_advice_of_killed_governor() {
    let place = Place::new("govern_release");
    let (reader, data) = reader(&place);
    let pid = reader.id();
    let before = flags(pid, &data);
    let mut governor = Running::start(&mut place.filemap(&format!("--pid {pid}")));
    assert!(governor.reaches(|| flags(pid, &data).contains("rr")));
    governor.signal("KILL");
    let _ = governor.output();
    assert!(flags(pid, &data).contains("rr"));
    assert_eq!(place.statistics().len(), 1);
    let mut stranger = Command::new("sleep").arg("60").spawn().unwrap();
    let other = place.filemap(&format!("--release --pid {}", stranger.id())).output().unwrap();
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert!(stderr(&other).contains("no killed governor"), "{}", stderr(&other));
    // Children are governed too: the reader is a child of this process.
    let named = std::process::id();
    let released = place.filemap(&format!("--release --pid {named}")).output().unwrap();
    assert_eq!(released.status.code(), Some(0), "{}", stderr(&released));
    assert!(stderr(&released).contains("advice of 1 mapping is restored"), "{}", stderr(&released));
    assert_eq!(flags(pid, &data), before);
    assert!(place.statistics().is_empty());
    assert!(signal("KILL", pid));
    let _ = reader.output();
}
