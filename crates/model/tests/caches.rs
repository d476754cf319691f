//! The extent cache, in chunks of both sizes, against the page-by-page one, in random jobs.

use crate::support::{Accesses, described, random_spec};
use filemap_core::plain::PlainCache;
use filemap_job::{Job, JobFlags};
use filemap_model::extents::{ExtentCache, TinyChunks};
use filemap_model::{Digest, Profile, Timing, trace_on};

/// Jobs in `cargo test`; ten times as many with `--ignored`.
const JOBS: u64 = 1_000;

#[test]
fn caches_agree_on_random_jobs() {
    check(1, JOBS);
}

#[test]
#[ignore = "ten thousand jobs: minutes"]
fn caches_agree_on_many_random_jobs() {
    check(JOBS + 1, 10 * JOBS);
}

fn check(first_seed: u64, jobs: u64) {
    for seed in first_seed..first_seed + jobs {
        let spec = random_spec(seed, Accesses::Any);
        let Some(difference) = difference(&spec) else { continue };
        let (spec, difference) = shrink(spec, difference);
        panic!("seed {seed}: {difference}\n{}", described(&spec));
    }
}

/// The first difference between the caches, on the usual machine or on one so slow that list
/// statistics are flushed every few misses; `None` if they agree or the job is invalid.
fn difference(spec: &JobFlags) -> Option<String> {
    let job = spec.clone().validate(None).ok()?;
    let usual = Profile::DEFAULT;
    let mut slow = usual;
    slow.device.latency_ns = 500_000_000;
    [("usual", usual), ("slow", slow)].iter().find_map(|(machine, profile)| {
        let fast = run(&job, profile, ExtentCache::new(job.machine.cache_limit));
        let tiny = run(&job, profile, TinyChunks::new(job.machine.cache_limit));
        let plain = run(&job, profile, PlainCache::new(job.machine.cache_limit));
        let differ = fast != plain || tiny != plain;
        differ
            .then(|| format!("{machine} machine\nextents {fast}\ntiny    {tiny}\nplain   {plain}"))
    })
}

fn run(job: &Job, profile: &Profile, cache: impl filemap_core::page_cache::PageCache) -> String {
    let mut digest = Digest::default();
    match trace_on(job, profile, Timing::Device, cache, &mut digest) {
        Ok(traced) => {
            let run = serde_json::to_string(&traced.run).unwrap();
            format!("{run} log {:016x} of {}", digest.value(), digest.decisions())
        }
        Err(error) => format!("{error} log {:016x} of {}", digest.value(), digest.decisions()),
    }
}

/// Removes phases and accesses as long as the difference remains.
fn shrink(mut spec: JobFlags, mut found: String) -> (JobFlags, String) {
    loop {
        let without = (0..spec.phase.len()).filter(|_| spec.phase.len() > 1).map(|phase| {
            let mut smaller = spec.clone();
            smaller.phase.remove(phase);
            smaller
        });
        let fewer = (0..spec.phase.len()).flat_map(|phase| {
            let accesses = spec.phase[phase].accesses.unwrap_or(1);
            [accesses / 2, accesses - accesses / 8, accesses - 1].map(|accesses| {
                let mut smaller = spec.clone();
                smaller.phase[phase].accesses = Some(accesses);
                smaller
            })
        });
        let smaller = without.chain(fewer).filter(|smaller| *smaller != spec);
        let Some((smaller, difference)) =
            smaller.into_iter().find_map(|spec| difference(&spec).map(|found| (spec, found)))
        else {
            return (spec, found);
        };
        (spec, found) = (smaller, difference);
    }
}
