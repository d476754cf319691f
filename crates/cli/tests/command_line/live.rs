//! Jobs on both engines: counters of the running kernel equal the model's.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::running::Running;
use crate::skip::skip;
use crate::{Scratch, filemap, has_disk, stderr};

/// Counters that both engines have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    data_pages_read: u64,
    major_faults: u64,
    inside: u64,
    /// Of programs only.
    between: Option<u64>,
    before: u64,
    after: u64,
}

impl Counts {
    fn of(record: &Value) -> Counts {
        let run = &record["runs"][0];
        let count = |part: &str, name: &str| run[part][name].as_u64();
        let known = |part, name| count(part, name).unwrap_or_else(|| panic!("{name}: {run}"));
        Counts {
            data_pages_read: known("counters", "data_pages_read"),
            major_faults: known("counters", "major_faults"),
            inside: known("cached", "inside"),
            between: count("cached", "between"),
            before: known("cached", "before"),
            after: known("cached", "after"),
        }
    }
}

/// Runs the job with `keys` on both engines, asserts equal counters and returns them. `None`, with
/// a printed note, if the running kernel cannot run it or was disturbed.
#[track_caller]
fn both(scratch: &Scratch, keys: &str) -> Option<Counts> {
    let job = scratch.file("job.toml", keys);
    let measured = record(scratch, &format!("run {job} --on kernel --json -"))?;
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let rules = measured["job"]["kernel"].as_str().unwrap();
    if !release.starts_with(&format!("{rules}.")) {
        skip(format!("the rules of {rules} are not those of {release}"));
        return None;
    }
    if measured["environment"]["runs_kept_with_foreign_eviction"].as_u64() > Some(0) {
        skip(format!("others took pages of the file in every run: {keys:?}"));
        return None;
    }
    // Facts about the machine that the model lacks.
    let [read_ahead, fs] = ["read_ahead_kb", "fs"].map(|key| &measured["job"][key]);
    let fs = fs.as_str().unwrap();
    let flags = format!("--on model --kernel {rules} --read-ahead-kb {read_ahead} --fs {fs}");
    let predicted = record(scratch, &format!("run {job} {flags} --json -"))?;
    let counts = Counts::of(&predicted);
    assert_eq!(counts, Counts::of(&measured), "model and kernel, {keys}");
    Some(counts)
}

/// stdout of the command; `None`, with a printed note, if it cannot run here.
#[track_caller]
fn record(scratch: &Scratch, args: &str) -> Option<Value> {
    let mut command = filemap(args);
    command.env("FILEMAP_STATE", scratch.path("state")).env("TMPDIR", scratch.path(""));
    let output = Running::start(&mut command).output();
    if output.status.code() == Some(4) {
        skip(stderr(&output));
        return None;
    }
    assert!(output.status.success(), "{args}: {}", stderr(&output));
    Some(serde_json::from_slice(&output.stdout).expect("one JSON object"))
}

/// The disk's readahead size, and the usual default on a scratch filesystem.
const READ_AHEADS: [&str; 2] = ["", "read_ahead_kb = 128\n"];

/// Phases of a job file, each a workload with its number of accesses.
fn phases(phases: &[(&str, u64)]) -> String {
    let phase = |(workload, accesses): &(&str, u64)| {
        format!("[[phase]]\nworkload = '{workload}'\naccesses = {accesses}\n")
    };
    phases.iter().map(phase).collect()
}

/// Programs and libraries of this host, of a few MiB at most: at least three.
fn programs() -> Vec<PathBuf> {
    let mapped = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let libraries = mapped.lines().filter_map(|line| line.split_once('/')).map(|(_, path)| path);
    let libc = libraries.map(|path| format!("/{path}")).find(|path| path.contains("/libc."));
    let own = env!("CARGO_BIN_EXE_filemap").to_string();
    let fixed = ["/bin/bash", "/bin/sh", "/usr/bin/git"].map(str::to_string);
    let all = [own].into_iter().chain(libc).chain(fixed).map(PathBuf::from);
    all.filter(|path| path.is_file()).collect()
}

/// The compiler's main library, over 100 MiB.
fn compiler() -> Option<PathBuf> {
    let cargo = PathBuf::from(option_env!("CARGO")?);
    let libraries = fs::read_dir(cargo.parent()?.parent()?.join("lib")).ok()?;
    let mut paths = libraries.flatten().map(|entry| entry.path());
    paths.find(|path| path.to_string_lossy().contains("/librustc_driver"))
}

#[test]
fn programs_are_cached_alike() {
    let scratch = Scratch::new("live_programs");
    let programs = programs();
    assert!(programs.len() >= 3, "{programs:?}");
    for program in programs.into_iter().chain(compiler()) {
        for (number, pattern) in ["elf", "random", "stride:7", "first"].into_iter().enumerate() {
            // One cached page of the first segment shows that segments are mapped.
            let all = phases(&[("elf", 1), (pattern, 400)]);
            let read_ahead = READ_AHEADS[number % 2];
            let keys = format!("file = '{}'\n{read_ahead}{all}", program.display());
            let Some(counts) = both(&scratch, &keys) else { continue };
            assert!(counts.inside > 0 && counts.between.is_some(), "{keys}: {counts:?}");
            let cached = counts.inside + counts.between.unwrap() + counts.before + counts.after;
            assert_eq!(cached, counts.data_pages_read, "{keys}");
        }
    }
}

#[test]
fn every_page_of_a_program_once() {
    let scratch = Scratch::new("live_every_page");
    for program in programs() {
        for advice in ["normal", "hugepage", "random", "sequential"] {
            let file = format!("file = '{}'\nworkload = 'elf'", program.display());
            both(&scratch, &format!("{file}\nadvice = '{advice}'\n"));
        }
    }
}

/// A loaded segment: offset, address, bytes, flags (4 readable, 2 writable, 1 executable).
type Load = (u64, u64, u64, u32);

/// A shared library of `size` bytes with these segments.
fn library(loads: &[Load], size: u64) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    bytes.extend([0, 64, 0].map(u64::to_le_bytes).as_flattened());
    bytes.extend([0, 0, 64, 56, loads.len() as u16, 0, 0, 0].map(u16::to_le_bytes).as_flattened());
    for &(offset, address, length, flags) in loads {
        bytes.extend([1, flags].map(u32::to_le_bytes).as_flattened());
        let words: [u64; 6] = [offset, address, address, length, length, 4096];
        bytes.extend(words.map(u64::to_le_bytes).as_flattened());
    }
    bytes.resize(size as usize, 0);
    bytes
}

/// Pages of the file between two segments, and one in both.
#[test]
fn separates_pages_between_segments() {
    let scratch = Scratch::new("live_between");
    let loads = [
        (0x0, 0x0, 0x80000, 4),
        (0x100000, 0x300000, 0x40000, 5),
        (0x13f800, 0x53f800, 0x20800, 6),
    ];
    let bytes = library(&loads, 4 << 20);
    let file = scratch.file("file", &bytes);
    for (read_ahead, between) in [("", 128), (READ_AHEADS[1], 8)] {
        let keys = format!("file = '{file}'\n{read_ahead}workload = 'elf'\n");
        let Some(counts) = both(&scratch, &keys) else { continue };
        assert_eq!(counts.inside, 128 + 64 + 32, "{counts:?}");
        if !read_ahead.is_empty() {
            assert!(counts.between >= Some(between) && counts.between < Some(128), "{counts:?}");
        }
    }
}

/// Segments that continue each other, overlap in the file or leave pages out.
#[test]
fn runs_programs_with_unusual_segments() {
    let scratch = Scratch::new("live_made_up");
    let mut state = 88172645463325252u64;
    let mut below = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    for number in 0..12 {
        let pages = 1 + below(3000);
        let (mut next, mut address) = (0, 0);
        let loads: Vec<Load> = (0..1 + below(5))
            .map(|_| {
                let first = if below(2) == 0 && next < pages { next } else { below(pages) };
                let length = 1 + below(pages - first).min(below(600));
                let start = address;
                next = first + length;
                address += (length + [0, 0, 1, 300][below(4) as usize]) * 4096;
                (first * 4096, start, length * 4096, 4 + below(2) as u32)
            })
            .collect();
        let file = scratch.file("file", library(&loads, pages * 4096));
        let mixed = phases(&[("elf", 1 + below(300)), ("random", 60), ("stride:77", 40)]);
        both(&scratch, &format!("file = '{file}'\n{}{mixed}", READ_AHEADS[number % 2]));
    }
}

#[test]
fn called_code_is_cached_alike() {
    let scratch = Scratch::new("live_exec");
    for read_ahead in READ_AHEADS {
        for advice in ["normal", "hugepage"] {
            let keys = format!("{read_ahead}advice = '{advice}'\nworkload = ");
            let size = "file_size = '16m'\n";
            let cold = both(&scratch, &format!("{size}{keys}'exec:cold'\n"));
            // Each page is called once, and therefore read.
            assert!(cold.is_none_or(|cold| cold.inside == 4096 && cold.after == 0), "{cold:?}");
            both(&scratch, &format!("{size}{keys}'exec:random'\naccesses = 300\n"));
            both(&scratch, &format!("{size}{keys}'exec'\naccesses = 5000\n"));
            let part = "map_offset = '5m'\nmap_len = '6m'\n";
            both(&scratch, &format!("{size}{part}{keys}'exec:random'\naccesses = 300\n"));
        }
    }
}

#[test]
fn reads_and_faults_share_readahead() {
    let scratch = Scratch::new("live_mixed");
    let mixes: [&[(&str, u64)]; 5] = [
        &[("read-sequential", 600), ("random", 200)],
        &[("random", 100), ("read-sequential", 1000)],
        &[("sequential", 700), ("read-sequential", 900)],
        &[("read-sequential", 300), ("sequential", 2000)],
        &[("sequential", 300), ("read-random", 40), ("stride:65", 60), ("read-sequential", 800)],
    ];
    let parts = ["", "map_offset = '5m'\nmap_len = '9m'\n", "split = 64\n"];
    for (number, mix) in mixes.into_iter().enumerate() {
        for (position, part) in parts.into_iter().enumerate() {
            let read_ahead = READ_AHEADS[(number + position) % 2];
            both(&scratch, &format!("file_size = '32m'\n{read_ahead}{part}{}", phases(mix)));
        }
    }
    let turns = [("random", 25), ("read-random", 20)].repeat(6);
    both(&scratch, &format!("file_size = '32m'\n{}", phases(&turns)));
}

#[test]
fn parts_and_pieces_of_a_file() {
    let scratch = Scratch::new("live_parts");
    let part = "file_size = '16m'\nmap_offset = '3m'\nmap_len = '5m'\n";
    for kind in ["", "exec = true\n", "split = 64\n", "split = 64\nsplit_prot = 'exec'\n"] {
        for (number, pattern) in ["sequential", "random", "reverse"].into_iter().enumerate() {
            let read_ahead = READ_AHEADS[number % 2];
            both(&scratch, &format!("{part}{kind}{read_ahead}{}", phases(&[(pattern, 1280)])));
        }
    }
}

/// In order through VMAs of a few pages: they all share the file's one stream.
#[test]
fn a_scan_of_pieces_misses_once() {
    let scratch = Scratch::new("live_pieces");
    for pieces in [16, 64, 512] {
        let scan = phases(&[("sequential", 4096)]);
        let keys = format!("file_size = '16m'\nread_ahead_kb = 128\nsplit = {pieces}\n{scan}");
        let Some(counts) = both(&scratch, &keys) else { return };
        assert_eq!((counts.major_faults, counts.data_pages_read), (1, 4096), "{pieces}");
    }
}

#[test]
fn a_program_on_both_engines_in_one_table() {
    let scratch = Scratch::new("live_table");
    let file = env!("CARGO_BIN_EXE_filemap");
    let job = format!("compare --on model,kernel --workload elf --file {file} --json -");
    let Some(report) = record(&scratch, &job) else { return };
    let cells = report["cells"].as_array().unwrap();
    let engines: Vec<_> = cells.iter().map(|cell| cell["engine"].as_str().unwrap()).collect();
    assert_eq!(engines, ["model", "kernel"]);
    for cell in cells {
        assert!(cell["figures"]["data_pages_read"]["median"].as_u64() > Some(0), "{cell}");
        assert!(cell["runs"][0]["cached"]["between"].is_u64(), "{cell}");
    }
    let command = report["command"].as_str().unwrap();
    assert!(command.contains("--workload elf") && command.contains("--on model,kernel"));
    assert!(Path::new(file).is_file(), "the program itself was copied, not touched");
}

#[test]
fn refuses_call_outside_code() {
    if !has_disk() {
        return;
    }
    let scratch = Scratch::new("live_no_code");
    let path = scratch.file("file", [0x90; 10_000]);
    for (flags, words) in [
        (format!("--file {path}"), "does not return immediately"),
        ("--file-size 1m --sparse".to_string(), "--sparse"),
    ] {
        let args = format!("run --on kernel --workload exec --accesses 1 {flags}");
        let output = filemap(&args).output().expect("the command starts");
        let message = stderr(&output);
        assert_eq!(
            (output.status.code(), message.matches('\n').count()),
            (Some(4), 1),
            "{message}"
        );
        assert!(message.contains(words), "{message}");
    }
}
