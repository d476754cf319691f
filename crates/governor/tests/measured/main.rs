//! What the governor gains and costs on this machine, as tables of docs.
//!
//! `cargo test -p filemap-governor --release --test measured -- --ignored` measures; without
//! `--ignored` nothing runs. `--repeats N` says how often, and parts of names choose the parts
//! `disk`, `loop`, `overhead` and `recency`. It takes 6 GiB of /var/tmp meanwhile. The figures
//! are worth something on a machine that does nothing else.

mod overhead;
mod recency;
mod rows;
mod samples;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::thread;

use filemap_kernel::journal::Journal;
use filemap_kernel::scratch::{Filesystem, Room, Scratch};

use support::bench::{AS, Bench};
use support::reader::{Pattern, advice, read};
use support::skip::skip;

/// How often each program runs, if nothing else is said.
const REPEATS: usize = 5;

/// The readahead of the filesystem on a loop device, in KiB: the kernel's default.
const LOOP_READ_AHEAD_KIB: u64 = 128;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, name, rest @ ..] = &arguments[..]
        && first == AS
    {
        return run_as(name, rest);
    }
    if !arguments.iter().any(|argument| argument == "--ignored") {
        return println!("measured: nothing is measured without -- --ignored");
    }
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse().ok()
    };
    let repeats: usize = value("--repeats").unwrap_or(REPEATS);
    let parts = ["disk", "loop", "overhead", "recency"];
    let named = |part: &&str| arguments.iter().any(|argument| argument == part);
    let chosen: Vec<&str> = parts.into_iter().filter(named).collect();
    let wants = |part: &str| chosen.is_empty() || chosen.contains(&part);
    let bench = Bench::new("measured");
    let running = thread::Builder::new().name("measured".to_string());
    let measure = || {
        if wants("disk") {
            on_disk(&bench, repeats);
        }
        if wants("overhead") {
            overhead::measure(&bench, repeats);
        }
        if wants("loop") || wants("recency") {
            on_loop(&bench, repeats, wants("loop"), wants("recency"));
        }
    };
    thread::scope(|scope| running.spawn_scoped(scope, measure).expect("a thread").join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// The programs that this binary is.
fn run_as(name: &str, arguments: &[String]) {
    match (name, arguments) {
        ("reader", [path, pattern, own]) => {
            let read = read(Path::new(path), Pattern::parse(pattern), advice(own));
            println!("{:x}\n{}", read.digest, read.elapsed.as_secs_f64());
        }
        ("marking-reader", [path, looks]) => {
            recency::marking_reader(Path::new(path), looks.parse().expect("a number"));
        }
        ("anonymous", [path]) => overhead::anonymous_program(Path::new(path)),
        ("faults", [path, who]) => overhead::faults_program(Path::new(path), who),
        _ => panic!("{name} is no program"),
    }
}

fn on_disk(bench: &Bench, repeats: usize) {
    let directory = bench.directory.join("disk");
    fs::create_dir(&directory).expect("there is room");
    let kib = rows::read_ahead_kib(&directory);
    let files = rows::Files::make(&directory);
    println!("\n## On the disk, whose readahead is {kib} KiB\n");
    rows::measure(bench, &files, repeats);
    fs::remove_dir_all(&directory).expect("it is ours");
}

fn on_loop(bench: &Bench, repeats: usize, has_rows: bool, has_recency: bool) {
    let state = bench.directory.join("state");
    let room = Room { files: 20, bytes: rows::BYTES, disk_bytes: rows::BYTES };
    let made = Journal::open_in(&state).and_then(|journal| {
        let kib = LOOP_READ_AHEAD_KIB;
        Scratch::create(&journal, &bench.directory, Filesystem::Ext4, room, kib)
    });
    let scratch = match made {
        Ok(scratch) => scratch,
        Err(error) => return skip(error),
    };
    if has_rows {
        let files = rows::Files::make(scratch.root());
        println!("\n## On a loop device, whose readahead is {LOOP_READ_AHEAD_KIB} KiB\n");
        rows::measure(bench, &files, repeats);
        files.remove();
    }
    if has_recency {
        recency::measure(bench, &scratch, repeats);
    }
}
