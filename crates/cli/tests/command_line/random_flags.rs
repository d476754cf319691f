//! Random flags: no panic, no hang, one line for each error.
//!
//! `FILEMAP_FUZZ_SECONDS` sets the duration (default 2 s); a failure prints the command line.

use std::time::{Duration, Instant};

use crate::filemap;

/// Time limit for one command.
const PATIENCE: Duration = Duration::from_secs(20);

const FLAGS: [&str; 31] = [
    "--workload",
    "--file-size",
    "--accesses",
    "--fraction",
    "--seed",
    "--kernel",
    "--with",
    "--map-offset",
    "--map-len",
    "--map-shift",
    "--split",
    "--split-prot",
    "--advice",
    "--exec",
    "--private",
    "--start",
    "--ram",
    "--anonymous",
    "--cache-limit",
    "--memory-max",
    "--read-ahead-kb",
    "--fault-around",
    "--arch",
    "--page-size",
    "--fs",
    "--bs",
    "--threads",
    "--writers",
    "--cpus",
    "--duration",
    "--folio-sizes",
];

const VALUES: [&str; 33] = [
    "0",
    "1",
    "3",
    "-1",
    "100",
    "4k",
    "64k",
    "1m",
    "64m",
    "1g",
    "1.5k",
    "18446744073709551616",
    "random",
    "sequential",
    "stride:7",
    "stride:0",
    "interleave:2",
    "read-random",
    "first",
    "thrash",
    "10ms",
    "6.12",
    "6.18",
    "mmap-miss",
    "vma-bound+p1",
    "arm64",
    "hugepage",
    "warm",
    "0.5",
    "exec",
    "xfs",
    "nonsense",
    "",
];

#[test]
fn random_flags_do_no_harm() {
    let seconds = std::env::var("FILEMAP_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(2));
    let mut state = 1;
    let mut commands = 0;
    while Instant::now() < end {
        check(&words(&mut state));
        commands += 1;
    }
    println!("{commands} commands");
}

fn words(state: &mut u64) -> Vec<&'static str> {
    let mut next = |bound: usize| {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % bound
    };
    let mut words = vec!["run", "--workload", "random", "--accesses", "20", "--file-size", "64m"];
    if next(4) > 0 {
        words.truncate(1 + 2 * next(4));
    }
    for _ in 0..1 + next(4) {
        words.push(FLAGS[next(FLAGS.len())]);
        if next(8) > 0 {
            words.push(VALUES[next(VALUES.len())]);
        }
    }
    words
}

fn check(words: &[&str]) {
    let start = Instant::now();
    let output = filemap("").args(words).output().expect("the program starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1 | 2 | 4)), "{words:?}: {code:?}, {errors}");
    assert!(start.elapsed() < PATIENCE, "{words:?}: {:?}", start.elapsed());
    if code != Some(0) {
        assert_eq!(errors.lines().count(), 1, "{words:?}: {errors}");
        assert!(errors.starts_with("filemap: "), "{words:?}: {errors}");
    }
}
