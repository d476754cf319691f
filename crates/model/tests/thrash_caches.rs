//! The job on three page caches, of which one is simple: each decides alike.

mod support;

use filemap_core::plain::PlainCache;
use filemap_model::Digest;
use filemap_model::extents::ExtentCache;
use filemap_model::thrash::words::WordCache;
use filemap_model::thrash::{Outcome, Thrash, run_on};

use support::thrash::random_job;

fn on_words(job: &Thrash) -> (Outcome, u64) {
    let mut digest = Digest::default();
    let cache = WordCache::new(job.threads, job.file_pages, job.capacity());
    (run_on(job, cache, &mut digest, false).unwrap(), digest.value())
}

fn on_extents(job: &Thrash) -> (Outcome, u64) {
    let mut digest = Digest::default();
    (run_on(job, ExtentCache::new(job.capacity()), &mut digest, false).unwrap(), digest.value())
}

fn on_plain(job: &Thrash) -> (Outcome, u64) {
    let mut digest = Digest::default();
    (run_on(job, PlainCache::new(job.capacity()), &mut digest, false).unwrap(), digest.value())
}

#[test]
fn caches_decide_alike() {
    for seed in 1..=150 {
        let job = random_job(seed);
        let words = on_words(&job);
        assert_eq!(words, on_extents(&job), "{job:?}");
        if seed <= 40 {
            assert_eq!(words, on_plain(&job), "{job:?}");
        }
    }
}
