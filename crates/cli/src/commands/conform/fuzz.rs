//! Random patterns of a kernel that is running.

use filemap_job::JobSpec;

use crate::error::Error;
use crate::random_jobs;

/// Seed of the patterns where none is given.
const DEFAULT_SEED: u64 = 1;

/// `jobs` random patterns; `flags` may give a seed, and nothing else.
///
/// # Errors
/// When other flags are given.
pub fn named(jobs: u64, mut flags: JobSpec) -> Result<Vec<(String, JobSpec)>, Error> {
    let seed = seed(&flags);
    flags.seed = None;
    if flags != JobSpec::default() {
        let message = "--fuzz draws its own jobs; give it --seed only, or leave it out";
        return Err(Error::Usage(message.to_string()));
    }
    let name = |number| format!("random {seed}/{number}");
    Ok((0..jobs).map(|number| (name(number), random_jobs::drawn(seed, number))).collect())
}

/// The seed of the patterns that `flags` ask for.
pub fn seed(flags: &JobSpec) -> u64 {
    flags.seed.unwrap_or(DEFAULT_SEED)
}
