//! `filemap calibrate`, on the smallest file that it accepts.

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
fn writes_profile_the_model_reads() {
    let scratch = Scratch::new("calibrate");
    let profile = scratch.file("profile.toml", "what was there before");
    let report = scratch.path("report.json");
    let args = format!("calibrate --output {profile} {SMALL} --json {report}");
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
fn reports_obstacles_before_measuring() {
    if !has_disk() {
        return;
    }
    let scratch = Scratch::new("calibrate-refused");
    for (args, code, words) in [
        (
            format!("calibrate {SMALL} --output /no/such/profile.toml"),
            2,
            &["/no/such", "opened"] as &[&str],
        ),
        (format!("calibrate {SMALL} --output {}", scratch.path("")), 2, &["opened", "directory"]),
        ("calibrate --file-size 1m".to_string(), 2, &["--file-size 1m", "64m"]),
        ("calibrate --file-size some".to_string(), 2, &["--file-size", "some"]),
        ("calibrate --runs 0".to_string(), 2, &["--runs 0", "1 to 100"]),
        (format!("calibrate --output - {SMALL} --json -"), 2, &["--output -", "stdout"]),
        (
            format!("calibrate --file-size 512p --runs 1 --output {}", scratch.path("profile")),
            4,
            &["no room"],
        ),
    ] {
        fails(&Running::start(&mut in_scratch(&scratch, &args)).output(), code, words);
        assert_eq!(left(&scratch, "temporary"), [""; 0], "{args}");
    }
}

#[test]
fn failed_calibration_leaves_no_profile() {
    if !has_disk() {
        return;
    }
    let scratch = Scratch::new("calibrate-failed");
    let profile = scratch.path("profile.toml");
    let args = format!("calibrate --output {profile} --file-size 512p --runs 1");
    fails(&Running::start(&mut in_scratch(&scratch, &args)).output(), 4, &["no room"]);
    assert!(!fs::exists(&profile).expect("it can be asked for"));
}

#[test]
#[ignore = "measures the disk: 5 s of a processor"]
fn model_uses_user_profile() {
    let scratch = Scratch::new("calibrate-user");
    let state = scratch.path("state-home");
    let of_user = |args: &str| {
        let mut command = in_scratch(&scratch, args);
        Running::start(command.env("XDG_STATE_HOME", &state)).output()
    };
    let job = "run --workload random --file-size 1m --accesses 5 --json -";
    let record = |args: &str| -> Value {
        let output = of_user(args);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    };
    let before = record(job);
    assert_eq!(before["job"]["machine"], "default");
    assert!(!before["command"].as_str().unwrap().contains("--machine"), "{before}");
    let calibrated = of_user(&format!("calibrate {SMALL}"));
    if calibrated.status.code() == Some(4) {
        println!("skipped: {}", stderr(&calibrated).trim());
        return;
    }
    let profile = format!("{state}/filemap/machine-profile.toml");
    let words = String::from_utf8_lossy(&calibrated.stdout).split_whitespace().collect::<String>();
    assert!(words.contains(&profile), "{words}");
    let after = record(job);
    assert_eq!(after["job"]["machine"], profile.as_str());
    assert_eq!(after["environment"]["profile_from"], profile.as_str());
    assert_ne!(after["environment"]["profile"], before["environment"]["profile"]);
    let again = after["command"].as_str().unwrap().strip_prefix("filemap ").unwrap().to_string();
    let again = record(&format!("{again} --json -"));
    for key in ["job", "runs", "command"] {
        assert_eq!(again[key], after[key]);
    }
    let built_in = record(&format!("{job} --machine default"));
    assert_eq!(built_in["runs"], before["runs"]);
    assert_eq!(built_in["environment"]["profile"], before["environment"]["profile"]);
    assert!(built_in["command"].as_str().unwrap().contains("--machine default"), "{built_in}");
    let explained = record(&job.replacen("run", "explain", 1));
    assert_eq!(explained["environment"]["profile_from"], profile.as_str());
    let of_published = |text: Value| text["environment"]["profile"].clone();
    let published = record("published vma-bound --json -");
    assert_eq!(of_published(published), of_published(before));
    fs::write(&profile, "speed = 3").expect("it is ours");
    let words = ["machine-profile.toml", "line 1", "filemap calibrate", "--machine default"];
    fails(&of_user(job), 2, &words);
    assert!(of_user(&format!("{job} --machine default")).status.success());
    assert!(of_user("doctor").status.success());
}
