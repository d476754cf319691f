//! Refaults: where a folio goes that returns soon after its eviction.
//!
//! The refault clock counts evicted and activated pages, including activations by reclaim itself
//! and by refaults. Mirrors the callers of `workingset_age_nonresident`, 6.12 and 6.18; seen on
//! 6.12, where stride:37 over an executable mapping of 48 MiB in 24 MiB reads 430,000 pages, and
//! would read 540,000 if activations by reclaim did not count.

use crate::units::PageCount;

/// Whether a folio evicted at clock `evicted` and added again at clock `now` (evictions and
/// activations so far, in pages) is recent enough to be activated.
///
/// Mirrors `workingset_test_recent`, 6.12 and 6.18, without swap. Test: `tests/workingset.rs`.
pub fn is_recent(now: u64, evicted: u64, active: PageCount) -> bool {
    now - evicted <= active.0
}

/// How many of `pages` base pages are not recent, if they were evicted one by one from clock
/// `evicted` on and are added again in that order: the first ones. Each of the others is activated,
/// which advances the clock as much as its successor was evicted later.
///
/// Stands for [`is_recent`] of each. Test: `tests/workingset.rs`.
pub fn late(now: u64, evicted: u64, pages: PageCount, active: PageCount) -> PageCount {
    PageCount((now - evicted).saturating_sub(active.0)).min(pages)
}

/// Whether the shadow of an eviction at clock `evicted` still exists at clock `now`: it is kept
/// until as many pages as the memory holds have been evicted, after which it cannot matter.
///
/// Stands for `shadow_lru_isolate`, 6.12 and 6.18, which forgets by memory pressure.
pub fn is_kept(now: u64, evicted: u64, capacity: u64) -> bool {
    now - evicted <= capacity
}
