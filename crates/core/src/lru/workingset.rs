//! Refaults: what a folio that returns soon after its eviction gets.
//!
//! The clock counts pages that are evicted, and pages that go to the active list: by a use, by a
//! refault, and when reclaim puts them there or back there. Mirrors the callers of
//! `workingset_age_nonresident`, 6.12 and 6.18; seen on 6.12, where stride:37 over an executable
//! mapping of 48 MiB in 24 MiB reads 430,000 pages, and would read 540,000 if reclaim's own
//! activations did not count.

use crate::units::PageCount;

/// Whether a folio evicted at clock `evicted` and added back at clock `now` (evictions and
/// activations so far, in pages) returns so soon that it goes to the active list.
///
/// Mirrors `workingset_test_recent`, 6.12 and 6.18, without swap. Test: `tests/workingset.rs`.
pub fn is_recent(now: u64, evicted: u64, active: PageCount) -> bool {
    now - evicted <= active.0
}

/// How many of `pages` base pages come too late to be recent, where they were evicted one by one
/// from clock `evicted` on and are added back in that order: the first ones. Each of the others
/// goes to the active list, which moves the clock for the next as far as it left later.
///
/// Stands for [`is_recent`] of each. Test: `tests/workingset.rs`.
pub fn late(now: u64, evicted: u64, pages: PageCount, active: PageCount) -> PageCount {
    PageCount((now - evicted).saturating_sub(active.0)).min(pages)
}

/// Whether the shadow of an eviction at clock `evicted` is still there at clock `now`: none
/// outlives the eviction of as many pages as the memory holds, after which it could not matter.
///
/// Stands for `shadow_lru_isolate`, 6.12 and 6.18, which forgets by memory pressure.
pub fn is_kept(now: u64, evicted: u64, capacity: u64) -> bool {
    now - evicted <= capacity
}
