//! The built-in patterns, and random ones.

use std::sync::LazyLock;

use filemap_job::JobSpec;
use serde::Deserialize;

use super::random_patterns::drawn;
use crate::error::Error;

/// Seed of the random patterns where none is given.
const DEFAULT_SEED: u64 = 1;

/// Names and jobs, in order.
pub fn built_in() -> &'static [(String, JobSpec)] {
    static ALL: LazyLock<Vec<(String, JobSpec)>> = LazyLock::new(read);
    &ALL
}

fn read() -> Vec<(String, JobSpec)> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        pattern: Vec<Entry>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Entry {
        name: String,
        job: JobSpec,
    }
    let file: File = toml::from_str(include_str!("patterns.toml")).expect("patterns.toml is ours");
    file.pattern.into_iter().map(|entry| (entry.name, entry.job)).collect()
}

/// So many random patterns, with their names; `flags` may give a seed, and nothing else.
///
/// # Errors
/// When other flags are given.
pub fn random(jobs: u64, mut flags: JobSpec) -> Result<Vec<(String, JobSpec)>, Error> {
    let seed = seed(&flags);
    flags.seed = None;
    if flags != JobSpec::default() {
        let message = "--fuzz draws its own jobs; give it --seed only, or leave it out";
        return Err(Error::Usage(message.to_string()));
    }
    let name = |number| format!("random {seed}/{number}");
    Ok((0..jobs).map(|number| (name(number), drawn(seed, number))).collect())
}

/// The seed of the random patterns that `flags` ask for.
pub fn seed(flags: &JobSpec) -> u64 {
    flags.seed.unwrap_or(DEFAULT_SEED)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use filemap_job::{Seen, ShownLog};
    use filemap_model::{Profile, trace_settled};

    use super::super::comparison::compare;
    use super::*;

    #[test]
    fn every_pattern_is_a_job_of_its_own() {
        let patterns = built_in();
        assert!(patterns.len() >= 85, "{} patterns", patterns.len());
        let names: BTreeSet<_> = patterns.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(names.len(), patterns.len());
        for (name, spec) in patterns {
            assert!(spec.clone().validate(None).is_ok(), "{name}");
        }
    }

    /// What conform compares is what the model decides: were the patterns cut down, or the log,
    /// it would agree about little. The 47 patterns of 2026-11-21 had 68,080 lines and 4,662 calls.
    #[test]
    fn the_patterns_make_the_model_decide_much() {
        let (mut lines, mut calls) = (0, 0);
        for (name, spec) in built_in() {
            let job = spec.clone().validate(None).unwrap();
            let mut log = ShownLog::default();
            trace_settled(&job, &Profile::DEFAULT, &mut log).unwrap();
            let log = log.into_lines();
            assert!(log.len() >= 2, "{name}: {} lines", log.len());
            lines += log.len();
            calls += compare(&log, &log, Seen::ALL, &[]).readahead_calls;
        }
        assert!(lines >= 65_000, "{lines} lines");
        assert!(calls >= 4_000, "{calls} readahead calls");
    }
}
