//! Profiles of devices that `advise` and `compare` measure and keep.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::running::Running;
use crate::{Scratch, filemap, has_disk, json, stderr};

/// What a command says when it begins to measure.
const MEASURING: &str = "measuring the device of";

/// A file that a device can be measured by.
fn data(scratch: &Scratch) -> String {
    // Some filesystems turn zeros into holes.
    scratch.file("data", vec![7u8; 64 << 20])
}

/// A comparison of a job on `file`, with the state directory `state`.
fn compare(file: &str, state: &str, flags: &str) -> Command {
    let job = format!("compare --workload random --file {file} --accesses 9 --json -");
    let mut command = filemap(&format!("{job} --variants baseline,advice=random {flags}"));
    command.env("XDG_STATE_HOME", state);
    command
}

/// The machine profile in the output of a comparison.
#[track_caller]
fn machine(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    let comparison: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    comparison["environment"]["profile_from"].as_str().expect("a name or path").to_string()
}

/// Paths of everything in the directory of kept profiles.
fn kept(state: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(Path::new(state).join("filemap/profiles")) else {
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().path().display().to_string()).collect()
}

#[test]
#[ignore = "measures the disk: 20 s"]
fn measures_a_device_once_and_keeps_its_profile() {
    if !has_disk() {
        return;
    }
    let scratch = Scratch::new("device-profile");
    let (file, state) = (data(&scratch), scratch.path("state"));
    let first = Running::start(&mut compare(&file, &state, "")).output();
    assert!(stderr(&first).contains(MEASURING), "{}", stderr(&first));
    let [path] = &kept(&state)[..] else { panic!("one profile: {:?}", kept(&state)) };
    assert_eq!(machine(&first), *path);
    let text = fs::read_to_string(path).unwrap();
    let profile: toml::Table = text.parse().unwrap();
    assert!(profile["device"]["latency_ns"].as_integer() > Some(0), "{text}");
    let date = profile["measured"].as_str().unwrap();
    assert!(text.starts_with("# Measured by filemap") && text.contains(&file), "{text}");
    let second = compare(&file, &state, "").output().unwrap();
    assert_eq!(stderr(&second), "");
    assert_eq!(machine(&second), *path);
    assert_eq!(fs::read_to_string(path).unwrap(), text);
    let run = format!("run --workload random --file {file} --accesses 9");
    let run = filemap(&run).env("XDG_STATE_HOME", &state).output().unwrap();
    let report = String::from_utf8(run.stdout).unwrap();
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains(&format!("a machine profile measured on {date}")), "{report}");
    // A file that cannot be measured by is on the same device.
    let small = scratch.file("small", "1");
    assert_eq!(machine(&compare(&small, &state, "").output().unwrap()), *path);
    let default = compare(&file, &state, "--machine default").output().unwrap();
    assert_eq!(machine(&default), "default");
}

#[test]
fn an_interrupted_measurement_leaves_nothing() {
    if !has_disk() {
        return;
    }
    let scratch = Scratch::new("device-profile-interrupted");
    let (file, state) = (data(&scratch), scratch.path("state"));
    for directory in ["journals", "temporary"] {
        fs::create_dir(scratch.path(directory)).unwrap();
    }
    let mut command = compare(&file, &state, "");
    command.env("FILEMAP_STATE", scratch.path("journals")).env("TMPDIR", scratch.path("temporary"));
    let mut running = Running::start(&mut command);
    let mut line = String::new();
    BufReader::new(running.stderr()).read_line(&mut line).unwrap();
    assert!(line.contains(MEASURING) && line.contains(&file), "{line}");
    running.signal("INT");
    let output = running.output();
    assert!(!output.status.success());
    assert_eq!(kept(&state), [""; 0]);
    assert!(fs::read_dir(scratch.path("temporary")).unwrap().next().is_none());
}

#[test]
fn measures_nothing_that_it_need_not_or_cannot_keep() {
    let scratch = Scratch::new("device-profile-none");
    let (file, state) = (data(&scratch), scratch.path("state"));
    let small = scratch.file("small", vec![7u8; 1 << 20]);
    let sparse = scratch.file("sparse", "");
    fs::File::options().write(true).open(&sparse).unwrap().set_len(1 << 30).unwrap();
    let blocked = scratch.path("blocked");
    fs::create_dir(&blocked).unwrap();
    fs::write(scratch.path("blocked/filemap"), "not a directory").unwrap();
    for (file, state, flags) in [
        (&file, state.as_str(), "--machine default"),
        (&small, &state, ""),
        (&sparse, &state, ""),
        (&file, "/dev/null/no-state", ""),
        // Not even root can write there.
        (&file, "/proc/self", ""),
        (&file, &blocked, ""),
    ] {
        let output = compare(file, state, flags).output().unwrap();
        assert_eq!(stderr(&output), "", "{file} {state} {flags}");
        assert_eq!(machine(&output), "default", "{file} {state} {flags}");
        assert_eq!(kept(state), [""; 0], "{file} {state} {flags}");
    }
}

#[test]
fn built_in_profiles_have_names() {
    for name in ["server", "nvme", "sata-ssd", "virtio", "gp3", "nfs", "lustre"] {
        let job = format!("run --workload random --file-size 1m --machine {name} --json -");
        let record = json(&job);
        assert_eq!(record["job"]["machine"], name);
        assert!(record["environment"]["profile"]["device"]["latency_ns"].as_u64() > Some(0));
    }
}
