//! When the list statistics are updated.

use filemap_core::lru::lists::LruLists;
use filemap_core::lru::statistics::ListSizes;
use filemap_core::plain::PlainCache;
use filemap_core::units::PageCount;
use filemap_job::JobFlags;
use filemap_model::{Profile, Timing, trace_on};

/// The sizes in the statistics after so many misses, at no more than `touches` per second.
fn known_after(misses: u64, touches: u64) -> ListSizes {
    let spec = format!(
        "workload = 'sequential'\nfile_size = '4m'\nread_ahead_kb = 0\n\
         cache_limit = '1m'\naccesses = {misses}\n"
    );
    let job = JobFlags::from_toml(&spec).unwrap().validate(None).unwrap();
    let mut profile = Profile::DEFAULT;
    profile.cost.touch_ns = 1_000_000_000 / touches;
    let cache = PlainCache::new(job.machine.cache_limit);
    let traced = trace_on(&job, &profile, Timing::Device, cache, &mut ()).unwrap();
    traced.cache.flushed_sizes()
}

#[test]
fn statistics_are_flushed_every_two_seconds() {
    let inactive = |pages| ListSizes { inactive: PageCount(pages), active: PageCount(0) };
    // A page every 10 ms and, as each is read, some 60 us: two seconds have passed before room is
    // made for page 199, and four before page 398. By then five batches of 397 pages are evicted,
    // as 256 may be cached.
    for (misses, known) in [(198, 0), (199, 198), (390, 198), (405, 237)] {
        assert_eq!(known_after(misses, 100), inactive(known), "{misses}");
    }
    // A page per second: a flush before the second, the fourth, and so on.
    for (misses, known) in [(1, 0), (2, 1), (3, 1), (4, 3), (5, 3), (6, 5)] {
        assert_eq!(known_after(misses, 1), inactive(known), "{misses}");
    }
}
