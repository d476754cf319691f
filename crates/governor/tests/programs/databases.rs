//! LMDB and SQLite, which map their databases.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::support::bench::Bench;
use crate::support::data::{DATABASES, is_there, lookups, python_with, script, sqlite};
use crate::support::skip::skip;

/// Entries of 2000 bytes, of which two share a page.
const ENTRIES: &str = "30000";

pub fn lmdb(bench: &Bench) {
    let Some(python) = python_with("lmdb") else {
        return skip("there is no lmdb for Python (python3-lmdb)");
    };
    let script = script(&bench.directory, "databases.py", DATABASES);
    let path = bench.directory.join("lmdb");
    let of = |arguments: &[&str]| {
        let mut command = Command::new(&python);
        command.arg(&script).arg(arguments[0]).arg(&path).args(&arguments[1..]);
        command
    };
    bench.plain(of(&["make", ENTRIES]));
    for (arguments, divisor) in
        [(&["gets", "300"][..], 4), (&["ranges", "10", "200000"], 1), (&["scan"], 0)]
    {
        let both = bench.both(16 << 20, &[&path], || of(arguments));
        let both = both.alike().well().governs(&path);
        match divisor {
            0 => both.reads_as_much(),
            divisor => both.reads_less(divisor),
        };
    }
    let _ = fs::remove_file(&path);
}

fn has_sqlite() -> bool {
    let has = is_there("sqlite3", "--version");
    if !has {
        skip("there is no sqlite3");
    }
    has
}

pub fn sqlite_reads(bench: &Bench) {
    if !has_sqlite() {
        return;
    }
    let path = bench.directory.join("sqlite");
    let rows = sqlite(&path, 64 << 20);
    let scan = "PRAGMA mmap_size = 1073741824; SELECT count(*), sum(length(v)) FROM t;";
    let check = "PRAGMA mmap_size = 1073741824; PRAGMA integrity_check;";
    for (text, divisor) in [(lookups(rows, 300).as_str(), 4), (scan, 0), (check, 0)] {
        let query = bench.directory.join("query.sql");
        fs::write(&query, text).expect("there is room");
        let command = || {
            let mut command = Command::new("sqlite3");
            command.arg(&path).arg(format!(".read {}", query.display()));
            command
        };
        let both = bench.both(16 << 20, &[&path], command).alike().well().governs(&path);
        match divisor {
            0 => both.reads_as_much(),
            divisor => both.reads_less(divisor),
        };
    }
    let _ = fs::remove_file(&path);
}

/// While another process writes to the database, and while the program itself holds locks that
/// others have to see.
pub fn sqlite_locks(bench: &Bench) {
    if !has_sqlite() {
        return;
    }
    let path = bench.directory.join("locked.sqlite");
    let rows = sqlite(&path, 32 << 20);
    let name = path.to_str().expect("a plain name");
    let mapped = "PRAGMA mmap_size = 1073741824;";
    let read = format!("SELECT sum(length(v)) FROM t WHERE k % 50 = 1 AND k < {rows};");
    // Others are asked behind lookups, and behind the statement that unmaps.
    let ask = format!(".shell sqlite3 {name} 'BEGIN IMMEDIATE; SELECT 1;' 2>&1 | sed 's/near.*//'");
    let holds = format!(
        "{mapped}\nBEGIN IMMEDIATE;\n{read}\n{ask}\nPRAGMA mmap_size = 0;\n{read}\n{ask}\n\
         {mapped}\n{read}\n{ask}\nUPDATE t SET v = v WHERE k = 7;\n{ask}\nROLLBACK;\n{ask}\n\
         PRAGMA integrity_check;\n"
    );
    let finds = format!("{mapped}\n{read}\nBEGIN IMMEDIATE;\n{read}\nPRAGMA integrity_check;\n");
    for (text, is_held) in [(&holds, false), (&finds, true)] {
        let query = bench.directory.join("locks.sql");
        fs::write(&query, text).expect("there is room");
        let holder = is_held.then(|| Holder::begin(name));
        let command = || {
            let mut command = Command::new("sqlite3");
            command.arg(&path).arg(format!(".read {}", query.display()));
            command
        };
        let both = bench.both(1 << 20, &[&path], command).alike().governs(&path);
        let said = both.plain.stdout() + &both.plain.stderr();
        assert!(said.contains("locked"), "{said}");
        drop(holder);
    }
    let _ = fs::remove_file(&path);
}

/// Another process that is writing to a database.
struct Holder(std::process::Child);

impl Holder {
    fn begin(path: &str) -> Holder {
        let mut child = Command::new("sqlite3")
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sqlite3 starts");
        let input = child.stdin.as_mut().expect("it has an input");
        input.write_all(b"BEGIN IMMEDIATE;\n.print held\n").expect("it reads its input");
        input.flush().expect("it reads its input");
        let mut line = String::new();
        let output = child.stdout.take().expect("it has an output");
        BufReader::new(output).read_line(&mut line).expect("it prints");
        assert_eq!(line, "held\n");
        Holder(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
