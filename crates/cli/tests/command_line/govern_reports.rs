//! Reports of `filemap govern`: `--json`, `--observe` and `--compare`.

use std::fs;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::govern_failures::IS_PLAIN;
use crate::governed::{Place, sleeping};
use crate::running::Running;
use crate::{schema, skip, stderr};

fn parsed(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// The reason why nothing is governed here, if so; prints that this part is skipped.
fn reason(processes: &Value) -> Option<String> {
    let mut of_each = processes.as_array().into_iter().flatten();
    let reason = of_each.find_map(|mapping| mapping["reason"].as_str()).map(str::to_string);
    if let Some(reason) = &reason {
        skip(reason);
    }
    reason
}

#[test]
fn writes_record_per_process() {
    let place = Place::new("govern_json");
    let [program, data] = place.lookups();
    let path = place.scratch.file("report", "old");
    let script = format!("{program} {data} 100 & {program} {data} 100; wait; exit 3");
    let mut command = place.script(&format!("--json {path}"), &script);
    // A program that exits immediately is not worth stopping.
    let output = command.env("LOOKUPS_PAUSE_US", "2000").output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(3), ""));
    let report: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    schema::check("govern", &report);
    schema::check_closed("govern", &report);
    assert_eq!(report["ended"]["exit_code"], 3);
    assert!(report["command"].as_str().unwrap().contains(&format!("--json {path} -- sh -c")));
    if reason(&report["processes"]).is_none() {
        assert_eq!(report["totals"]["mappings"], 2, "{report}");
        let processes = report["processes"].as_array().unwrap();
        for process in processes {
            assert_eq!(process["running"], false);
            assert_eq!(process["mappings"][0]["path"], data.as_str());
            assert_eq!(process["mappings"][0]["bytes"], 32 << 20);
        }
    }
    let none = format!("--include *.none --json {path} -- {program} {data} 10");
    assert!(place.filemap(&none).output().unwrap().status.success());
    let report: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    if reason(&report["processes"]).is_none() {
        let why = report["ungoverned"].as_str().unwrap();
        assert!(why.contains("that --include and --exclude leave"), "{why}");
        assert_eq!(report["processes"], Value::Array(Vec::new()));
    }
    assert!(place.statistics().is_empty(), "{:?}", place.statistics());
    let output = place.script("--json -", "printf 'a\n'").output().unwrap();
    assert!(output.stdout.starts_with(b"a\n{\n"), "{output:?}");
    let kept = fs::read(&path).unwrap();
    let failed = place.filemap(&format!("--json {path} -- ./none")).output().unwrap();
    assert_eq!((failed.status.code(), fs::read(&path).unwrap()), (Some(127), kept));
}

/// The next command removes what a killed command left.
#[test]
fn removes_output_of_killed_command() {
    let place = Place::new("govern_swept");
    let mut running = Running::start(&mut place.script("--json -", "exec sleep 2"));
    assert!(running.reaches(|| !place.statistics().is_empty()));
    running.signal("KILL");
    let _ = running.output();
    assert_eq!(place.statistics().len(), 1);
    assert!(place.filemap("-- true").output().unwrap().status.success());
    assert!(place.statistics().is_empty(), "{:?}", place.statistics());
}

/// Gives no advice, and reports what it would have done next to the program's output.
#[test]
fn observe_reports_planned_changes() {
    let place = Place::new("govern_observe");
    let [program, data] = place.lookups();
    let script = format!("{program} {data} 100; grep -A30 {data} /proc/self/smaps; exit 3");
    let output = place.script("--observe", &script).output().unwrap();
    let alone = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(3), alone.stdout));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("Observed: sh -c") && text.contains("Asked for:"), "{text}");
    assert!(place.statistics().is_empty());
}

#[test]
fn plain_and_governed_runs_are_compared() {
    let place = Place::new("govern_compare");
    let [program, data] = place.lookups();
    let compare = "--compare --runs 2 --json -";
    let output = place.filemap(&format!("{compare} -- {program} {data} 50")).output().unwrap();
    let report = parsed(&output);
    schema::check("govern-compare", &report);
    schema::check_closed("govern-compare", &report);
    assert_eq!(report["runs"].as_array().unwrap().len(), 4);
    let variants = report["runs"].as_array().unwrap().iter().map(|run| &run["variant"]);
    assert_eq!(variants.collect::<Vec<_>>(), ["plain", "governed", "governed", "plain"]);
    assert_eq!(report["differences"], Value::Array(Vec::new()));
    assert_eq!(report["cells"][2]["verdict"], "not tested");
    let files = report["files"].as_array().unwrap();
    if files.is_empty() {
        skip(report["ungoverned"].as_str().expect("a reason"));
    } else {
        // Libraries of 1 MiB or more may be among them.
        assert!(files.iter().any(|file| file["path"] == data.as_str()), "{files:?}");
    }
    assert!(place.statistics().is_empty());
}

#[test]
fn compares_programs_without_governed_files() {
    let place = Place::new("govern_nothing");
    let output = place.filemap("--compare --runs 1 -- true").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{text}");
    assert!(text.contains("No file of this program was governed"), "{text}");
    assert!(text.contains("major faults") && text.contains("not tested"), "{text}");
}

#[test]
fn different_output_is_a_failed_check() {
    let place = Place::new("govern_differs");
    let script = format!("{IS_PLAIN}; echo $?");
    let output = place.script("--compare --runs 2", &script).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("Check failed: what stdout has of governed runs differs"), "{text}");
    let output = place.script("--compare --runs 2", IS_PLAIN).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("Check failed: the exit code"), "{text}");
    let output = place.script("--compare --runs 2", "date +%N; echo $$ >&2").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("among the plain runs already"), "{text}");
}

#[test]
fn comparison_leaves_nothing() {
    let place = Place::new("govern_leaves");
    let start = Instant::now();
    let script = "setsid sleep 1007 & sleep 1007 & exit 0";
    let output = place.script("--compare --runs 1", script).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(start.elapsed() < Duration::from_secs(60));
    let mut running = Running::start(&mut place.script("--compare", "sleep 1008 & sleep 1008"));
    let parent = running.id();
    let children = || fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let mut child = String::new();
    assert!(running.reaches(|| {
        child = children().unwrap_or_default().trim().to_string();
        !child.is_empty()
    }));
    std::thread::sleep(Duration::from_millis(200));
    running.signal("TERM");
    let output = running.output();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(143), 0), "{output:?}");
    // A zombie, which init has not reaped yet, has no command line.
    let words = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
    assert_eq!(String::from_utf8_lossy(&words), "", "process {child} runs on");
    assert!(place.statistics().is_empty());
    let left = [sleeping(1007), sleeping(1008)].concat();
    assert!(left.is_empty(), "the program's own children are gone too: {left:?}");
}

/// Arguments that are not UTF-8 are shown with replacement characters.
#[test]
fn reports_non_utf8_arguments() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new("govern_words");
    let mut command = place.command("govern", "--compare --runs 1 --json - -- true");
    let output = command.arg(std::ffi::OsStr::from_bytes(b"\xff.dat")).output().unwrap();
    let report = parsed(&output);
    let words = report["environment"]["command_line"].as_str().unwrap();
    assert!(words.ends_with("true \u{fffd}.dat"), "{words}");
}
