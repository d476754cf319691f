//! Built-in and random patterns.

use std::sync::LazyLock;

use filemap_job::{JobFlags, JobSpec};
use serde::Deserialize;

use super::random_patterns::draw_pattern;
use crate::error::Error;

/// Default seed of random patterns.
const DEFAULT_SEED: u64 = 1;

/// Built-in patterns in order, with their names.
pub fn built_in() -> &'static [(String, JobSpec)] {
    static ALL: LazyLock<Vec<(String, JobSpec)>> = LazyLock::new(|| {
        entries().iter().map(|entry| (entry.name.clone(), entry.job.spec())).collect()
    });
    &ALL
}

/// The flags of patterns without tables.
pub(super) fn flags() -> impl Iterator<Item = &'static JobFlags> {
    entries().iter().filter_map(|entry| match &entry.job {
        Keys::Flags(flags) => Some(&**flags),
        Keys::Tables(_) => None,
    })
}

/// A pattern of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternEntry {
    name: String,
    job: Keys,
}

/// The keys of a job file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Keys {
    Flags(Box<JobFlags>),
    Tables(Box<JobSpec>),
}

impl Keys {
    fn spec(&self) -> JobSpec {
        match self {
            Keys::Flags(flags) => JobSpec::from_flags(flags).expect("patterns.toml is ours"),
            Keys::Tables(spec) => JobSpec::clone(spec),
        }
    }
}

fn entries() -> &'static [PatternEntry] {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct PatternFile {
        pattern: Vec<PatternEntry>,
    }
    static ALL: LazyLock<Vec<PatternEntry>> = LazyLock::new(|| {
        let file: PatternFile =
            toml::from_str(include_str!("patterns.toml")).expect("patterns.toml is ours");
        file.pattern
    });
    &ALL
}

/// `jobs` random patterns with their names; `flags` may contain a seed and nothing else.
///
/// # Errors
/// If other flags are given.
pub fn random(jobs: u64, flags: &JobFlags) -> Result<Vec<(String, JobSpec)>, Error> {
    let seed = seed(flags);
    if *flags != (JobFlags { seed: flags.seed, ..JobFlags::default() }) {
        let message = "--fuzz draws its own jobs; give it --seed only, or leave it out";
        return Err(Error::Usage(message.to_string()));
    }
    let name = |number| format!("random {seed}/{number}");
    let job =
        |number| JobSpec::from_flags(&draw_pattern(seed, number)).map(|spec| (name(number), spec));
    Ok((0..jobs).map(job).collect::<Result<_, _>>()?)
}

/// Seed of the random patterns.
pub fn seed(flags: &JobFlags) -> u64 {
    flags.seed.unwrap_or(DEFAULT_SEED)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use filemap_core::rules::Kernel;
    use filemap_job::{ShownKinds, ShownLog};
    use filemap_model::{Profile, Timing, trace_timed};

    use super::super::common_prefix::common_prefix;
    use super::super::comparison::compare;
    use super::*;

    #[test]
    fn every_pattern_is_a_job_of_its_own() {
        let patterns = built_in();
        assert!(patterns.len() >= 85, "{} patterns", patterns.len());
        let names: BTreeSet<_> = patterns.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(names.len(), patterns.len());
        for (name, written) in patterns {
            let job = written.validate(None).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((job.files.len(), job.threads.len()), (1, 1), "{name}");
        }
    }

    /// The pages mapped by a retried fault depend on timing. No advice or eviction of a pattern may
    /// depend on them, or a correct kernel might differ.
    #[test]
    fn patterns_with_tables_go_by_no_timing() {
        let of_tables = built_in().iter().filter(|(_, spec)| !spec.is_single_mapping());
        assert!(of_tables.clone().count() >= 28);
        for (name, tables) in of_tables {
            // No kernel of the mm tree has been built.
            let built = Kernel::ALL.into_iter().filter(|kernel| *kernel != Kernel::Mm0b2777a511b7);
            for kernel in built.map(Kernel::name) {
                let kernel = Some(kernel.to_string());
                let job = JobSpec { kernel, ..tables.clone() }.validate(None).unwrap();
                let [settled, prompt] = [Timing::Settled, Timing::Prompt].map(|timing| {
                    let mut log = ShownLog::default().under(&job.rules);
                    trace_timed(&job, &Profile::DEFAULT, timing, &mut log).unwrap();
                    log.into_lines()
                });
                assert!(
                    common_prefix(&settled, &prompt, ShownKinds::ALL).is_complete(),
                    "{name} on {:?}",
                    job.rules.kernel
                );
            }
        }
    }

    /// Guards against patterns or a log cut down until little is compared. The 47 patterns of
    /// 2026-11-21 had 68,080 lines and 4,662 calls.
    #[test]
    fn the_patterns_make_the_model_decide_much() {
        let (mut lines, mut calls) = (0, 0);
        for (name, written) in built_in() {
            let job = written.validate(None).unwrap();
            let mut log = ShownLog::default();
            trace_timed(&job, &Profile::DEFAULT, Timing::Settled, &mut log).unwrap();
            let log = log.into_lines();
            assert!(log.len() >= 2, "{name}: {} lines", log.len());
            lines += log.len();
            calls += compare(&log, &log, ShownKinds::ALL, &[]).readahead_calls;
        }
        assert!(lines >= 65_000, "{lines} lines");
        assert!(calls >= 4_000, "{calls} readahead calls");
    }
}
