//! Reports never overwrite files that the governed program reads.

use std::fs::{self, File};
use std::process::Stdio;

use crate::governed::Place;
use crate::stderr;

const CONTENTS: &str = "precious";

/// A directory with a file.
fn with_file(test: &str) -> (Place, String) {
    let place = Place::new(test);
    let path = place.scratch.file("precious", CONTENTS);
    (place, path)
}

#[test]
fn open_files_and_arguments_are_not_overwritten() {
    let (place, path) = with_file("govern_keeps");
    let link = place.scratch.path("link");
    fs::hard_link(&path, &link).unwrap();
    let ran = place.scratch.path("ran");
    for way in ["", "--compare --runs 1"] {
        for (argument, words) in [
            (path.clone(), "an argument of the program"),
            (link.clone(), "an argument of the program"),
            (format!("if={path}"), "an argument of the program"),
            (format!("--input={link}"), "an argument of the program"),
            (String::new(), "the program's stdin"),
        ] {
            let args = format!("{way} --json {path} -- touch {ran} {argument}");
            let stdin = File::open(if argument.is_empty() { &path } else { "/dev/null" }).unwrap();
            let output = place.filemap(&args).stdin(stdin).output().unwrap();
            let message = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{argument}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
            assert!(message.contains(words) && message.contains("--json"), "{message}");
            assert_eq!(fs::read_to_string(&path).unwrap(), CONTENTS);
            assert!(!fs::exists(&ran).unwrap());
        }
    }
    let log = File::options().append(true).open(&path).unwrap();
    let mut command = place.filemap(&format!("--json {path} -- touch {ran}"));
    assert_eq!(command.stderr(log).status().unwrap().code(), Some(2));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(CONTENTS) && text.contains("the program's stderr"), "{text}");
}

/// Only the very same file is refused.
#[test]
fn other_files_are_written() {
    let (place, path) = with_file("govern_writes");
    let new = place.scratch.path("new");
    let log = || File::options().append(true).open(&path).unwrap();
    for args in [
        format!("--json {new} -- cat {path}"),
        format!("--json {new} -- true {new}.other ={path} x={path}"),
        // Appending replaces nothing.
        "--json - -- true".to_string(),
        "--json /dev/stderr -- true".to_string(),
        format!("--json {new} -- cat {path}"),
    ] {
        let mut command = place.filemap(&args);
        // Input and output of the program may be the same file only when appending.
        let stdin = if args.contains(&new) { &path } else { "/dev/null" };
        let command = command.stdin(File::open(stdin).unwrap()).stdout(Stdio::null());
        let status = command.stderr(log()).status().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(status.success() && text.starts_with(CONTENTS), "{args}: {text}");
        if args.contains(&new) {
            fs::remove_file(&new).unwrap();
        }
    }
    let both = log();
    let mut command = place.filemap("--json - -- true");
    let command = command.stdout(both.try_clone().unwrap()).stderr(both);
    assert!(command.status().unwrap().success());
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
            crate::skip("nothing is governed here");
            return;
        }
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("a file that the program read"), "{message}");
        assert_eq!(fs::metadata(&data).unwrap().len(), 32 << 20);
    }
}
