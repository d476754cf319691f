//! Direct reclaim of a memory cgroup: how much it scans, and when it scans the active list.

use filemap_core::lru::direct::DirectReclaim;
use filemap_core::lru::lists::LruLists;
use filemap_core::units::PageCount;

use crate::support::lists::{plain, reclaim, touch, with_active};
use crate::support::one_file::OneFile;

/// Reclaims for one page. Returns the pages evicted.
fn one_page(cache: &mut OneFile) -> u64 {
    reclaim(DirectReclaim::new(PageCount(1), 4096), cache, &plain(), &mut ()).evicted.0
}

#[test]
fn scan_doubles_until_a_batch_is_reclaimed() {
    // One part in 4096 of 16384 is 4; then 7 of 16380, 15 of 16373, and 31 of 16358.
    let mut cache = with_active(16_384, 0);
    assert_eq!(one_page(&mut cache), 4 + 7 + 15 + 31);
}

#[test]
fn pass_ends_with_the_batch_that_reclaims_enough() {
    // One part in 4096 of 2^20 is 256: eight batches, the first of which is enough.
    let mut cache = with_active(1 << 20, 0);
    assert_eq!(one_page(&mut cache), 32);
    let goal = PageCount(40);
    let direct = DirectReclaim::new(goal, 4096);
    assert_eq!(reclaim(direct, &mut cache, &plain(), &mut ()).evicted, PageCount(64));
}

#[test]
fn accessed_pages_are_scanned_without_replacement() {
    // 64 pages at the tail are accessed: 2, 4, 8, 16 and 32 of them are scanned, then a batch of
    // the last 2 and 30 that are evicted, and another.
    let mut cache = with_active(8_192, 0);
    (0..64).for_each(|page| touch(&mut cache, page));
    assert_eq!(one_page(&mut cache), 30 + 32);
    assert_eq!(cache.inactive(), PageCount(8_192 - 62));
}

#[test]
fn active_list_is_skipped_unless_statistics_require_it() {
    let mut cache = with_active(14_000, 9_000);
    assert!(one_page(&mut cache) >= 32);
    assert_eq!(cache.active(), PageCount(9_000));
}

#[test]
fn active_list_is_scanned_if_statistics_require_it() {
    // Of 5000 and 9000: (1, 2), (2, 4), (4, 8), (9, 17), (19, 32), which evicts a batch.
    let mut cache = with_active(14_000, 9_000);
    cache.flush_statistics();
    assert_eq!(one_page(&mut cache), 35);
    assert_eq!(cache.active(), PageCount(8_937));
}

#[test]
fn active_list_is_scanned_if_nothing_else_is_evictable() {
    // All are active: only they are scanned, and aged, 1/4096 first.
    let mut cache = with_active(4_096, 4_096);
    assert!(one_page(&mut cache) >= 32);
    assert!(cache.active() < PageCount(4_096));
}
