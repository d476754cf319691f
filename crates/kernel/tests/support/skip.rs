//! Reports of tests that cannot run here.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// Names the file to which skips are appended, for a list at the end of several test programs: the
/// output of passing tests is not shown.
const LIST_VARIABLE: &str = "FILEMAP_SKIPS";

/// Reports that the running test, or a part of it, is skipped, and why. The test is the one that
/// its thread is named after.
pub fn skip(reason: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("unnamed");
    let reason = reason.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("{}: {test}: {reason}\n", env!("CARGO_CRATE_NAME"));
    print!("skipped: {line}");
    let Some(path) = std::env::var_os(LIST_VARIABLE) else { return };
    let mut list =
        OpenOptions::new().append(true).create(true).open(path).expect("a list of skips");
    list.write_all(line.as_bytes()).expect("the list of skips takes a line");
}
