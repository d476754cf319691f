//! A job has one decision log: on every machine, in every process and thread, and whatever ran
//! before. The digests are in `determinism.toml`.

use std::process::Command;

use filemap_job::JobFlags;
use filemap_model::{Digest, Profile, trace};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    job: String,
    decisions: u64,
    digest: String,
}

fn cases() -> Vec<Case> {
    toml::from_str::<Cases>(include_str!("determinism.toml")).unwrap().case
}

/// Number and digest of the decisions of a job file.
fn run(job: &str) -> (u64, String) {
    let job = JobFlags::from_toml(job).unwrap().validate(None).unwrap();
    let mut digest = Digest::default();
    trace(&job, &Profile::DEFAULT, &mut digest).unwrap();
    (digest.decisions(), format!("{:016x}", digest.value()))
}

/// Runs the cases, starting with number `first`, and compares their digests.
fn check(first: usize) {
    let mut cases = cases();
    cases.rotate_left(first);
    let described = |case: &Case, (decisions, digest): (u64, String)| {
        format!("{}decisions = {decisions}\ndigest = \"{digest}\"", case.job)
    };
    let found: Vec<_> = cases.iter().map(|case| described(case, run(&case.job))).collect();
    let stored = |case: &Case| described(case, (case.decisions, case.digest.clone()));
    let stored: Vec<_> = cases.iter().map(stored).collect();
    assert!(found == stored, "the digests are\n\n{}", found.join("\n\n"));
}

#[test]
fn digests_are_as_stored() {
    let cases = cases();
    assert!(cases.len() >= 10, "{} jobs", cases.len());
    for case in cases {
        assert!(case.decisions > 100, "a job of hardly any decisions shows nothing:\n{}", case.job);
    }
    check(0);
}

#[test]
fn neither_threads_nor_order_matter() {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || check(3 * thread % cases().len()));
        }
    });
}

/// Each process has other addresses, and other seeds in the hash tables of the standard library.
#[test]
fn processes_do_not_matter() {
    for _ in 0..3 {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "determinism::digests_are_as_stored", "--test-threads", "1"])
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}");
    }
}

#[test]
fn the_digest_tells_jobs_apart() {
    let job = "workload = 'random'\nfile_size = '64m'\naccesses = 500\n";
    let digest = run(job);
    for other in ["seed = 2", "read_ahead_kb = 64", "with = 'p1+p2'", "fault_around = '16k'"] {
        assert_ne!(run(&format!("{job}{other}\n")), digest, "{other}");
    }
}
