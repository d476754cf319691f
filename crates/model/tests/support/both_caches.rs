//! Programs on all stores of the page cache.

use filemap_core::page_cache::PageCache;
use filemap_core::plain::PlainCache;
use filemap_job::Run;
use filemap_job::program::{Job, JobSpec};
use filemap_model::extents::{ExtentCache, TinyChunks};
use filemap_model::{Digest, Error, Profile, Timing, trace_on};

/// The decisions of a run, and its counts.
pub type Found = (Digest, Result<Run, Error>);

/// The program of `text`.
pub fn valid(text: &str) -> Job {
    let program = JobSpec::from_toml(text).and_then(|spec| spec.validate(None));
    program.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The decisions and the run of the program on `profile`, which are the same on every store.
///
/// # Panics
/// If the stores disagree, with `case`.
pub fn agreed(program: &Job, profile: &Profile, case: &str) -> Found {
    let limit = program.machine.cache_limit;
    let fast = run_on(program, profile, ExtentCache::new(limit));
    let plain = run_on(program, profile, PlainCache::new(limit));
    assert_eq!(fast, plain, "{case}");
    let tiny = run_on(program, profile, TinyChunks::new(limit));
    assert_eq!(tiny, plain, "in tiny chunks: {case}");
    fast
}

/// Runs the program that `random` makes of each seed. `each` gets the program and what it did,
/// which is the same on every store.
///
/// # Panics
///
/// As for [`agreed`].
pub fn agreed_on_random(
    seeds: impl IntoIterator<Item = u64>,
    random: impl Fn(u64) -> String,
    mut each: impl FnMut(&Job, Result<Run, Error>),
) {
    for seed in seeds {
        let text = random(seed);
        let program = valid(&text);
        let (_, run) = agreed(&program, &Profile::DEFAULT, &format!("seed {seed}\n{text}"));
        each(&program, run);
    }
}

fn run_on(program: &Job, profile: &Profile, cache: impl PageCache) -> Found {
    let mut digest = Digest::default();
    let run = trace_on(program, profile, Timing::Device, cache, &mut digest);
    (digest, run.map(|traced| traced.run))
}
