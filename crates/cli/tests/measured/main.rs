//! Recordings of real programs in the model, beside what the programs read alone, as a table of
//! docs/METHOD.md.
//!
//! `cargo test -p filemap-cli --release --test measured -- --ignored` measures; without `--ignored`
//! nothing runs. `disk` and `loop` choose a part: the disk of /var/tmp with its readahead, or a
//! loop device on it with 128 KiB, which needs root. Other words choose the programs whose names
//! have them. It takes 6 GiB of /var/tmp meanwhile.

// What the governor's measurements use as well.
#[allow(dead_code, reason = "a part is used here")]
#[path = "../../../governor/tests/support/data.rs"]
mod data;
#[allow(dead_code, reason = "a part is used here")]
#[path = "../../../governor/tests/support/draws.rs"]
mod draws;
#[allow(dead_code, reason = "a part is used here")]
#[path = "../../../governor/tests/support/outcome.rs"]
mod outcome;
mod programs;
#[path = "../../../kernel/tests/support/skip.rs"]
mod skip;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use filemap_kernel::journal::Journal;
use filemap_kernel::scratch::{Filesystem, Room, Scratch};
use filemap_kernel::{cold, residency};
use serde_json::Value;

use outcome::run;
use programs::Program;
use skip::skip;

/// How often each program runs alone.
const REPEATS: usize = 3;

/// The readahead of the filesystem on a loop device, in KiB: the kernel's default.
const LOOP_READ_AHEAD_KIB: u64 = 128;

/// What no program here takes.
const LIMIT: Duration = Duration::from_secs(300);

/// What is being read when a program ends has arrived after so long.
const ARRIVAL: Duration = Duration::from_millis(300);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--ignored") {
        return println!("measured: nothing is measured without -- --ignored");
    }
    let words: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    let (parts, names): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| ["disk", "loop"].contains(word));
    let wants = |part: &str| parts.is_empty() || parts.contains(&part);
    let directory = tempfile::tempdir_in("/var/tmp").expect("a directory of the test's own");
    install(directory.path());
    let running = thread::Builder::new().name("measured".to_string());
    let measure = || {
        if wants("disk") {
            println!("\n## On the disk of {}\n", directory.path().display());
            table(directory.path(), &directory.path().join("disk"), &names);
        }
        if wants("loop") {
            on_loop(directory.path(), &names);
        }
    };
    thread::scope(|scope| running.spawn_scoped(scope, measure).expect("a thread").join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Puts the command and the library that was built with it into a directory.
fn install(directory: &Path) {
    let built = Path::new(env!("CARGO_BIN_EXE_filemap"));
    let library = built.with_file_name("deps").join("libfilemap_governor.so");
    for file in [built, &library] {
        let name = file.file_name().expect("it has a name");
        fs::copy(file, directory.join(name)).expect("it was built, and there is room");
    }
}

fn on_loop(own: &Path, names: &[&str]) {
    let room = Room { files: 100, bytes: programs::BYTES, disk_bytes: programs::BYTES };
    let made = Journal::open_in(&own.join("state")).and_then(|journal| {
        Scratch::create(&journal, own, Filesystem::Ext4, room, LOOP_READ_AHEAD_KIB)
    });
    match made {
        Ok(scratch) => {
            println!("\n## On a loop device, whose readahead is {LOOP_READ_AHEAD_KIB} KiB\n");
            table(own, &scratch.root().join("files"), names);
        }
        Err(error) => skip(error),
    }
}

/// Measures programs on files that are made at `files`, and removed. The rest is in `own`.
fn table(own: &Path, files: &Path, names: &[&str]) {
    fs::create_dir(files).expect("there is room");
    println!("| Program | Pages, model | Pages, kernel | Majors, model | Majors, kernel |");
    println!("|---|--:|--:|--:|--:|");
    for program in programs::all(own, files) {
        if names.is_empty() || names.iter().any(|name| program.name.contains(name)) {
            println!("{}", row(&program, own));
        }
    }
    fs::remove_dir_all(files).expect("it is ours");
}

/// A line of the table: the model of a recording, and what the program reads alone.
fn row(program: &Program, own: &Path) -> String {
    let alone: Vec<(u64, u64)> = (0..REPEATS).map(|_| cold_run(program, own)).collect();
    let name = program.name;
    match modelled(program, own) {
        Ok((pages, majors)) => format!(
            "| {name} | {pages} | {} | {majors} | {} |",
            each(alone.iter().map(|(pages, _)| pages)),
            each(alone.iter().map(|(_, majors)| majors)),
        ),
        Err(message) => {
            skip(format!("{name}: {message}"));
            format!("| {name} | not recorded | | | |")
        }
    }
}

/// Different numbers, in order.
fn each<'a>(numbers: impl Iterator<Item = &'a u64>) -> String {
    let mut numbers: Vec<u64> = numbers.copied().collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Pages that a run alone on cold files brings into the page cache, and its major faults.
fn cold_run(program: &Program, own: &Path) -> (u64, u64) {
    program.files.iter().for_each(|file| cold::drop_file(file).expect("it can be dropped"));
    let outcome = run(&mut program.command(), own, LIMIT).well(program.name);
    thread::sleep(ARRIVAL);
    let cached = |file: &PathBuf| {
        let open = File::open(file).expect("it is there");
        let pages = open.metadata().expect("it is open").len().div_ceil(4096);
        residency::resident_pages(&open, pages).expect("its pages can be asked for").len()
    };
    (program.files.iter().map(cached).sum(), outcome.major_faults)
}

/// Pages read and major faults of the model, which runs a recording of the program.
fn modelled(program: &Program, own: &Path) -> Result<(u64, u64), String> {
    let recording = own.join("recording");
    let filemap = || Command::new(own.join("filemap"));
    let mut command = filemap();
    command.args(["record", "--out"]).arg(&recording).arg("--").args(&program.words);
    let output = command.output().expect("the command starts");
    let message = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || message.contains("filemap:") {
        return Err(message.into_owned());
    }
    let mut command = filemap();
    command.arg("run").arg(&recording).args(["--kernel", "host", "--json", "-"]);
    let output = command.output().expect("the command starts");
    let record: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let counter = |name: &str| record["run"]["counters"][name].as_u64().expect("a number");
    Ok((counter("data_pages_read"), counter("major_faults")))
}
