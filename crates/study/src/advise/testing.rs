//! Studies for tests.

use super::record::{FileUse, Study};
use super::trial::{Outcome, Trial};
use super::{Change, Contents, Target};

/// The only mapping of the only file.
pub fn on(name: &str) -> Target {
    Target { file: 0, name: name.to_string(), numbers: vec![0] }
}

/// Of one file; the time is proportional to the latency.
pub fn outcome(pages: u64, ms: u64) -> Outcome {
    Outcome {
        data_pages_read: pages,
        files: vec![pages],
        major_faults: 3,
        elapsed_ns: ms * 1_000_000,
        elapsed_ns_at_half_latency: ms * 500_000,
        elapsed_ns_at_double_latency: ms * 2_000_000,
    }
}

/// Of a program with one file, of which `trials` were tried each alone.
pub fn study(now: Outcome, trials: Vec<(Change, Outcome)>) -> Study {
    let file =
        FileUse { name: "data.mdb".to_string(), used_pages: 3000, contents: Contents::Other };
    let trial = |(change, outcome)| Trial { changes: vec![change], outcome };
    Study {
        files: vec![file],
        now,
        trials: trials.into_iter().map(trial).collect(),
        page_bytes: 4096,
        read_ahead_kb: 8192,
        latency_ns: 54_000,
        ..Study::default()
    }
}
