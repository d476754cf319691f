//! Reports of `filemap govern --compare` on failing programs.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::governed::Place;
use crate::{schema, skip, stderr};

/// Shell condition: whether the script runs plain, as a direct child of the comparison.
pub const IS_PLAIN: &str = "grep -q 'co[m]pare' /proc/$PPID/cmdline";

/// The report on `script` as text and as JSON, and the exit code.
fn compared(place: &Place, script: &str) -> (String, Value, Option<i32>) {
    let path = place.scratch.path("report");
    let args = format!("--compare --runs 2 --json {path}");
    let output = place.script(&args, script).output().unwrap();
    let json = std::fs::read(&path).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    let report = serde_json::from_slice(&json).unwrap();
    schema::check("govern-compare", &report);
    schema::check_closed("govern-compare", &report);
    (String::from_utf8(output.stdout).unwrap(), report, output.status.code())
}

fn ending(variant: &str, exit_code: Option<i32>, signal: Option<i32>, runs: u64) -> Value {
    json!({"variant": variant, "exit_code": exit_code, "signal": signal, "runs": runs})
}

/// Asserts that `text` contains `words` before its first table.
fn begins_with(text: &str, words: &str) {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let found = line.find(words).unwrap_or_else(|| panic!("no '{words}' in {text}"));
    assert!(found < line.find("major faults").expect("there is a table"), "{text}");
}

#[test]
fn reports_failed_runs() {
    let place = Place::new("govern_fails");
    let (text, report, code) = compared(&place, "exit 1");
    let words = "The program failed in all runs: plain 2 with exit code 1; governed 2 with exit \
                 code 1.";
    begins_with(&text, words);
    let endings = [ending("plain", Some(1), None, 2), ending("governed", Some(1), None, 2)];
    assert_eq!((&report["endings"], code), (&json!(endings), Some(0)));
    let (text, report, _) = compared(&place, "exit 0");
    assert!(!text.contains("failed") && !text.contains("exit code"), "{text}");
    let endings = [ending("plain", Some(0), None, 2), ending("governed", Some(0), None, 2)];
    assert_eq!(report["endings"], json!(endings));
}

#[test]
fn differing_exits_are_listed_first() {
    let place = Place::new("govern_fails_otherwise");
    let script = format!("ulimit -c 0; {IS_PLAIN} || kill -SEGV $$");
    let (text, report, code) = compared(&place, &script);
    let words = "Check failed: the exit code of governed runs differs from that of plain runs: \
                 plain 2 with exit code 0; governed 2 by signal 11.";
    begins_with(&text, words);
    assert_eq!(report["endings"][1], ending("governed", None, Some(11), 2));
    assert_eq!(code, Some(1));
    // Plain runs differ among themselves, and none exits like the governed ones.
    let counter = place.scratch.file("counter", "");
    let script =
        format!("{IS_PLAIN} || exit 7; echo >> {counter}; exit $(($(wc -l < {counter}) % 2))");
    let (text, report, code) = compared(&place, &script);
    assert_eq!(code, Some(1), "{text}");
    begins_with(&text, "plain 1 with exit code 0 and 1 with exit code 1; governed 2 with exit");
    assert_eq!(report["differences"].as_array().unwrap().len(), 1, "{report}");
}

#[test]
fn warns_of_files_left_by_first_run() {
    let place = Place::new("govern_fails_later");
    let made = place.scratch.path("made");
    let (text, _, code) = compared(&place, &format!("mkdir {made} 2> /dev/null"));
    assert_eq!(code, Some(0), "{text}");
    begins_with(&text, "A governed run before them, which told the files, ended with exit code 0");
}

/// A background program that waits for the terminal would never exit.
#[test]
fn runs_without_a_terminal() {
    let place = Place::new("govern_terminal");
    let filemap = place.scratch.path("filemap");
    let reads = "read x < /dev/tty || exit 3";
    let command = format!("{filemap} govern --compare --runs 1 -- sh -c '{reads}'");
    // `script` runs its command on a terminal.
    let mut script = Command::new("timeout");
    script.args(["20", "script", "-qec", &command, "/dev/null"]).stdin(Stdio::null());
    script.env("XDG_RUNTIME_DIR", place.scratch.path("run"));
    let output = script.env("FILEMAP_STATE", place.scratch.path("state")).output().unwrap();
    if output.status.code() == Some(127) {
        return skip("there is no script(1)");
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("The program failed in all runs"), "{:?} {text}", output.status);
}

/// A file that the program opens itself is known once it is mapped.
#[test]
fn a_mapped_file_is_not_overwritten() {
    let place = Place::new("govern_mapped");
    let [program, data] = place.lookups();
    let script = format!("exec {program} $(echo {data}) 20");
    for way in ["", "--compare --runs 1"] {
        let output = place.script(&format!("{way} --json {data}"), &script).output().unwrap();
        let message = stderr(&output);
        if output.status.code() == Some(0) {
            skip("nothing is governed here");
            return;
        }
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("a file that the program read"), "{message}");
        assert_eq!(std::fs::metadata(&data).unwrap().len(), 32 << 20);
    }
}
