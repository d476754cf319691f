//! Databases and arrays, and the programs that read them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::draws::Draws;

/// Reads LMDB databases.
pub const DATABASES: &str = include_str!("python/databases.py");
/// Reads arrays.
pub const ARRAYS: &str = include_str!("python/arrays.py");

/// A Python that has `module`, if there is one. Debian's own has what Debian's packages install.
pub fn python_with(module: &str) -> Option<PathBuf> {
    let candidates = ["/usr/bin/python3", "python3"].map(PathBuf::from);
    let import = format!("import {module}");
    let has = |python: &PathBuf| {
        let output = Command::new(python).args(["-c", &import]).output();
        output.is_ok_and(|output| output.status.success())
    };
    candidates.into_iter().find(has)
}

/// Whether a program can be run, as it answers to `argument`.
pub fn is_there(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success())
}

/// A program of Python, kept in `directory`.
pub fn script(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, text).expect("there is room for a program");
    path
}

/// Rows of a table of SQLite take about so many bytes.
const ROW_BYTES: u64 = 1000;

/// A database of SQLite with a table `t` of `bytes` bytes: a key, and a text.
pub fn sqlite(path: &Path, bytes: u64) -> u64 {
    let rows = bytes / ROW_BYTES;
    let text = ROW_BYTES / 2 - 20;
    let make = format!(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; \
         CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT); \
         WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < {rows}) \
         INSERT INTO t SELECT k, hex(zeroblob({text})) || k FROM n;"
    );
    let output = Command::new("sqlite3").arg(path).arg(make).output().expect("sqlite3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    rows
}

/// Lookups of `count` of `rows` rows, through a mapping of the database.
pub fn lookups(rows: u64, count: u64) -> String {
    let mut draws = Draws::new(6);
    let mut text = String::from("PRAGMA mmap_size = 8589934592;\n");
    for _ in 0..count {
        let key = draws.below(rows) + 1;
        text += &format!("SELECT k, length(v) FROM t WHERE k = {key};\n");
    }
    text
}

/// Runs `program` alone, which takes `input`, and returns what it prints.
pub fn filtered(program: &mut Command, input: &str) -> String {
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("it has an input");
    stdin.write_all(input.as_bytes()).expect("it reads its input");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
