//! Programs that others have written, and a few lines of C.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::data::{ARRAYS, DATABASES, is_there, lookups, python_with, script, sqlite};
use crate::skip::skip;

const FILE_BYTES: u64 = 600 << 20;

/// Of all files, with what the databases take beside their rows.
pub const BYTES: u64 = 5 * FILE_BYTES;

/// A program, and the files that are cold when it begins.
pub struct Program {
    pub name: &'static str,
    pub words: Vec<String>,
    pub files: Vec<PathBuf>,
}

impl Program {
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command
    }

    fn new(name: &'static str, words: &[&str], files: &[&Path]) -> Program {
        let words = words.iter().map(ToString::to_string).collect();
        Program { name, words, files: files.iter().map(|file| file.to_path_buf()).collect() }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain name")
}

/// All that can run here. Their files are made in `files`, and what is no data in `own`.
pub fn all(own: &Path, files: &Path) -> Vec<Program> {
    let data = files.join("data");
    let bytes = (0..FILE_BYTES / 64).map(|line| format!("{line:063x}\n")).collect::<String>();
    fs::write(&data, bytes).expect("there is room");
    let mut programs = readers(own, &data);
    programs.extend(arrays(own, &data));
    programs.extend(databases(own, files));
    if is_there("rg", "--version") {
        let words = ["rg", "--mmap", "-j1", "-c", "^0*9a", text(&data)];
        programs.push(Program::new("ripgrep --mmap", &words, &[&data]));
    } else {
        skip("there is no ripgrep");
    }
    programs.extend(repository(&files.join("repository")));
    programs
}

fn readers(own: &Path, data: &Path) -> Vec<Program> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/measured/readers.c");
    let program = own.join("readers");
    let compiled =
        Command::new("cc").args(["-O1", "-pthread", source, "-o"]).arg(&program).status();
    assert!(compiled.expect("there is a C compiler").success());
    let kinds = [
        ("C, a private mapping with writes", "private"),
        ("C, 4 threads", "threads"),
        ("C, a fork", "fork"),
    ];
    let reader = |(name, kind)| Program::new(name, &[text(&program), kind, text(data)], &[data]);
    kinds.map(reader).into()
}

fn arrays(own: &Path, data: &Path) -> Vec<Program> {
    let Some(python) = python_with("numpy") else {
        skip("there is no numpy");
        return Vec::new();
    };
    let script = script(own, "arrays.py", ARRAYS);
    let kinds = [
        ("numpy, 2000 rows gathered", "gather", "2000"),
        ("numpy, 200 shuffled batches", "batches", "200"),
        ("numpy, a column of rows of 64 KiB", "column", "65536"),
        ("numpy, a column of rows of 1 MiB", "column", "1048576"),
    ];
    let words =
        |kind, count| [text(&python), text(&script), kind, text(data), count].map(String::from);
    let program = |(name, kind, count)| Program {
        name,
        words: words(kind, count).into(),
        files: vec![data.to_owned()],
    };
    kinds.map(program).into()
}

fn databases(own: &Path, files: &Path) -> Vec<Program> {
    let mut programs = Vec::new();
    if let Some(python) = python_with("lmdb") {
        let script = script(own, "databases.py", DATABASES);
        let path = files.join("lmdb");
        let of = |words: &[&str]| {
            let mut all = vec![text(&python), text(&script), words[0], text(&path)];
            all.extend(&words[1..]);
            all.into_iter().map(String::from).collect::<Vec<_>>()
        };
        // Two entries of 2000 bytes share a page.
        let made = of(&["make", &(FILE_BYTES / 2048).to_string()]);
        let status = Command::new(&made[0]).args(&made[1..]).status();
        assert!(status.expect("Python starts").success());
        let kinds = [
            ("python-lmdb, 2000 gets", &["gets", "2000"][..]),
            ("python-lmdb, 100 ranges of 400 KB", &["ranges", "100", "400000"]),
        ];
        programs.extend(kinds.map(|(name, words)| Program {
            name,
            words: of(words),
            files: vec![path.clone()],
        }));
    } else {
        skip("there is no python-lmdb");
    }
    if is_there("sqlite3", "--version") {
        let path = files.join("sqlite");
        let queries = own.join("lookups.sql");
        fs::write(&queries, lookups(sqlite(&path, FILE_BYTES), 3000)).expect("there is room");
        let read = format!(".read {}", text(&queries));
        let words = ["sqlite3", text(&path), &read];
        programs.push(Program::new("sqlite3, 3000 lookups by mmap", &words, &[&path]));
    } else {
        skip("there is no sqlite3");
    }
    programs
}

/// The history of a repository with a pack of some 60 MiB.
fn repository(path: &Path) -> Option<Program> {
    if !is_there("git", "--version") {
        skip("there is no git");
        return None;
    }
    let git = || {
        let mut git = Command::new("git");
        git.arg("-C").arg(path);
        git
    };
    let ran = |command: &mut Command| {
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
        assert!(status.expect("git starts").success(), "{command:?}");
    };
    ran(Command::new("git").args(["init", "-q"]).arg(path));
    for commit in 0..30_u64 {
        // What does not compress: digests of numbers.
        let lines = (0..60_000_u64).map(|line| {
            let number = (line * 30 + commit + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("{:016x}\n", number ^ number >> 29)
        });
        fs::write(path.join(format!("file{commit}")), lines.collect::<String>()).expect("room");
        ran(git().args(["add", "."]));
        let author = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "more"];
        ran(git().args(author));
    }
    ran(git().args(["repack", "-adq"]));
    let packs = fs::read_dir(path.join(".git/objects/pack")).expect("it has packs");
    let files: Vec<PathBuf> = packs.map(|entry| entry.expect("an entry").path()).collect();
    let words = ["git", "-C", text(path), "log", "-p"].map(String::from).into();
    Some(Program { name: "git log -p over a pack", words, files })
}
