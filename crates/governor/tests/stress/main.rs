//! A program that does at random what programs do with mappings, processes, threads and signals.
//! With the same seed it has to see the same whether it is governed or not: it prints a digest of
//! all that it reads and all that it is told.
//!
//! `cargo test -p filemap-governor --test stress` tries some seeds; behind `-- --ignored` it tries
//! 200. `FILEMAP_SEED` names the first, which a failure prints; with `-- --one` it is the only
//! one, and what the program does is shown.

mod events;
mod memory;
mod processes;
mod program;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use filemap_kernel::storage::Storage;

use support::bench::{AS, Bench, has_observer, write};
use support::library::statistics;
use support::outcome::{Outcome, run};
use support::skip::skip;

/// Seeds that every test run tries, and those that are tried on demand.
const USUAL: u64 = 20;
const ALL: u64 = 200;

/// The program takes a second or so: one that takes this long hangs.
const LIMIT: Duration = Duration::from_secs(20);

/// The smallest mapping that is governed.
const MIN_BYTES: u64 = 64 << 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, seed, directory, rest @ ..] = &arguments[..]
        && first == AS
    {
        return program::main(seed, Path::new(directory), rest);
    }
    let bench = Bench::new("stress");
    if let Some(reason) = Storage::of(&bench.directory).expect("the directory's disk").unsuited() {
        return skip(format!("{} {reason}", bench.directory.display()));
    }
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let first = std::env::var("FILEMAP_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let seeds = match () {
        () if has("--one") => 1,
        () if has("--ignored") => ALL,
        () => USUAL,
    };
    let mut faults = 0;
    for seed in first..first + seeds {
        faults += alike(&bench, seed, has("--one"));
    }
    println!("stress: {seeds} programs do the same, with {faults} governed faults");
    assert!(faults > 0 || !has_observer(), "nothing was governed");
}

/// Compares the program of a seed with itself governed. Returns how many faults were.
fn alike(bench: &Bench, seed: u64, shows: bool) -> u64 {
    let left = bench.directory.join(format!("statistics-{seed}"));
    fs::create_dir_all(&left).expect("a directory for statistics");
    let plain = outcome(bench, seed, None);
    let governed = outcome(bench, seed, Some(&left));
    let seen = |of: &Outcome| (of.end, of.stdout(), of.stderr());
    if shows {
        println!("{}{}", plain.stdout(), plain.stderr());
    }
    let (before, after) = (seen(&plain), seen(&governed));
    let mut steps = before.1.lines().zip(after.1.lines()).enumerate();
    let different = steps.find(|(_, (one, other))| one != other);
    assert!(
        before == after,
        "FILEMAP_SEED={seed}: {:?} {}, but governed {:?} {}: {different:?}",
        before.0,
        before.2,
        after.0,
        after.2
    );
    let all = statistics(&left);
    let faults = all.iter().flat_map(|of| &of.mappings).map(|of| of.faults).sum();
    let _ = fs::remove_dir_all(&left);
    faults
}

fn outcome(bench: &Bench, seed: u64, governed: Option<&Path>) -> Outcome {
    let directory = bench.directory.join("files");
    prepare(&directory);
    let own = std::env::current_exe().expect("the test has a path");
    let mut command = Command::new(own);
    command.arg(AS).arg(seed.to_string()).arg(&directory);
    if let Some(statistics) = governed {
        bench.library.govern(&mut command, MIN_BYTES, statistics);
    }
    run(&mut command, &bench.directory, LIMIT)
}

/// Files as the program finds them: one that it never changes, and others. None is cached.
fn prepare(directory: &Path) {
    if !directory.exists() {
        fs::create_dir(directory).expect("there is room");
        write(&directory.join("kept"), program::FILE_BYTES);
    }
    for number in 0..program::FILES {
        let path = directory.join(number.to_string());
        fs::copy(directory.join("kept"), &path).expect("there is room");
    }
    for entry in fs::read_dir(directory).expect("it is ours") {
        let path = entry.expect("an entry of the directory").path();
        filemap_kernel::cold::drop_file(&path).expect("the file can be dropped");
    }
}
