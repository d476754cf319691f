//! `compare --format kernel`: a table for a mail, and the command that repeats it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Scratch, filemap, stderr};

/// Maximum line length in characters.
const COLUMNS: usize = 75;

/// stdout of the command with `args`, run in `directory`.
fn letter(args: &[&str], directory: &Path) -> String {
    let mut command = filemap("");
    let output = command.args(args).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the command at the end of `letter` in a shell in `directory`, and returns its stdout.
fn pasted(letter: &str, directory: &Path) -> String {
    let (_, command) = letter.split_once("\nCommand:\n\n").expect("a command");
    let command = command.split("\n\n").next().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_filemap")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(directory).env("PATH", path);
    shell.env("XDG_STATE_HOME", "/dev/null/no-state").stdin(Stdio::null());
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{command}\n{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn check(args: &[&str], directory: &Path) -> String {
    let letter = letter(args, directory);
    for line in letter.lines() {
        assert!(line.len() <= COLUMNS, "{} columns: {line}\n{letter}", line.len());
        assert!(line.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{line:?}\n{letter}");
        assert!(!line.ends_with(' '), "{line:?}\n{letter}");
    }
    assert_eq!(pasted(&letter, directory), letter, "{args:?}");
    letter
}

const WORKLOADS: [&str; 6] =
    ["random", "sequential", "stride:2053", "reverse", "interleave:3", "read-random"];

const VARIANTS: [&str; 14] = [
    "baseline",
    "p1",
    "p1+p2",
    "vma-bound",
    "miss-fault-address+miss-no-retry+vma-bound+exec-unify+vma-retry",
    "advice=random",
    "advice=random+advice=hugepage",
    "read_ahead_kb=16",
    "read_ahead_kb=8192+p1+p2",
    "kernel=6.12",
    "ram=2g+p2",
    "fault_around=4k",
    "governor",
    "cache_limit=8m+read_ahead_kb=512+fault_around=16k+kernel=6.12+advice=sequential",
];

#[test]
fn any_comparison_can_be_mailed_and_pasted() {
    let seed: u64 = 1 + u64::from(std::process::id());
    println!("seed {seed}");
    let mut state = seed;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    let scratch = Scratch::new("letters-random");
    for _ in 0..20 {
        let mut drawn: Vec<&str> = Vec::new();
        let wanted = 2 + below(5);
        while drawn.len() < wanted {
            let variant = VARIANTS[below(VARIANTS.len())];
            if !drawn.contains(&variant) {
                drawn.push(variant);
            }
        }
        let variants = drawn.join(",");
        let workload = WORKLOADS[below(WORKLOADS.len())];
        let seeds = ["1", "3"][below(2)];
        let args = ["compare", "--workload", workload, "--file-size", "16m", "--accesses", "50"];
        let more = ["--seeds", seeds, "--variants", &variants, "--format", "kernel"];
        let letter = check(&[&args[..], &more].concat(), &scratch.0);
        assert!(letter.contains("read from device"), "{letter}");
    }
}

const PROGRAM: &str = "[[file]]\nname = 'data'\nsize = '1m'\n[[open]]\nname = 'a'\nfile = 'data'\n\
                       [[thread]]\n[[thread.phase]]\nopen = 'a'\nworkload = 'read-sequential'\n\
                       accesses = 1\n";

#[test]
fn a_job_file_is_part_of_the_letter() {
    let scratch = Scratch::new("letters-jobs");
    let phases = "file_size = \"4m\"\n\n[[phase]]\nworkload = \"random\"\naccesses = 9\n\n\
                  [[phase]]\nworkload = \"sequential\"\naccesses = 9\n";
    let long = format!("# {}\n{phases}", "x".repeat(80));
    // A name that is not ASCII, and one that a shell would split.
    for (name, text, shown) in [
        ("phases.toml", phases, true),
        ("a program's.toml", PROGRAM, true),
        ("größe 1.toml", PROGRAM, true),
        ("long.toml", &long, false),
    ] {
        scratch.file(name, text);
        let letter = check(
            &["compare", name, "--variants", "baseline,p1", "--format", "kernel"],
            &scratch.0,
        );
        assert_eq!(letter.contains(text.trim_end()), shown, "{letter}");
        assert_eq!(letter.contains("is not shown here"), !shown, "{letter}");
    }
}

#[test]
fn several_jobs_are_one_letter() {
    let scratch = Scratch::new("letters-several");
    for (name, workload) in [("one.toml", "random"), ("two.toml", "stride:2053")] {
        scratch.file(name, format!("workload = '{workload}'\nfile_size = '16m'\n"));
    }
    let args = ["compare", "one.toml", "two.toml", "--variants", "baseline,read_ahead_kb=16,p1"];
    let letter = check(&[&args[..], &["--seeds", "3", "--format", "kernel"]].concat(), &scratch.0);
    for words in [
        "2 jobs: changes against baseline",
        "one - random of 16m",
        "Read from device:",
        "\none ",
        "\ntwo ",
        "one, p1, read from device: ",
        "two.toml is:\n\nworkload = 'stride:2053'",
    ] {
        assert!(letter.contains(words), "{words}: {letter}");
    }
    assert_eq!(letter.matches("Variants:").count(), 1, "{letter}");
}

#[test]
fn letter_leaves_other_outputs_unchanged() {
    let scratch = Scratch::new("letters-record");
    let args = "compare --workload random --file-size 4m --accesses 9 --variants baseline,p1";
    let plain = filemap(&format!("{args} --json -")).output().unwrap();
    let path = scratch.path("record.json");
    let output = filemap(&format!("{args} --format kernel --json {path}")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let undated = |text: &[u8]| {
        let mut record: serde_json::Value = serde_json::from_slice(text).unwrap();
        record["environment"]["date"].take();
        record
    };
    assert_eq!(undated(&std::fs::read(path).unwrap()), undated(&plain.stdout));
}

#[test]
fn refuses_letter_without_before() {
    for args in [
        "run --workload random --file-size 1m",
        "explain --workload random --file-size 1m",
        "published mmap-miss",
        "doctor",
        "conform",
        "calibrate --output /dev/null",
        "folio-ops",
    ] {
        let output = filemap(&format!("{args} --format kernel")).output().unwrap();
        let errors = stderr(&output);
        assert_eq!(
            (output.status.code(), errors.lines().count()),
            (Some(2), 1),
            "{args}: {errors}"
        );
        assert!(errors.contains("'kernel'") && errors.contains("--format"), "{args}: {errors}");
        assert!(output.stdout.is_empty(), "{args}");
    }
}
