//! The active list: when it is aged, which folios move, and where they go.

use filemap_core::address::mapping::{FileMapping, Split, SplitProt};
use filemap_core::cache::FileCache;
use filemap_core::lru::lists::LruLists;
use filemap_core::lru::reclaim::reclaim;
use filemap_core::units::{PageCount, PageIndex};

use crate::support::lists::{plain, touch, whole, with_active};
use crate::support::machine::{executable, part};
use crate::support::map;
use crate::support::one_file::{OneFile, mapped};

/// Makes a pass over both lists by the statistics. Returns the pages evicted.
fn one_pass(cache: &mut OneFile) -> PageCount {
    cache.flush_statistics();
    reclaim(cache, PageCount(1), 4096, &plain(), &mut ())
}

#[test]
fn oversized_active_list_is_aged() {
    // 60 of 100 are active, pages 0 to 59; the sizes in the statistics decide.
    let mut cache = with_active(100, 60);
    // A 32nd of 40 and 60 is scanned (1, 1), which leaves 40 and 59, then a 16th (2, 3), and so on:
    // (5, 7) of 41 and 56, (10, 12) of 43 and 49, (22, 18) of 45 and 37. By then 40 are evicted.
    let found = one_pass(&mut cache);
    assert_eq!(found, PageCount(40));
    assert_eq!((cache.inactive(), cache.active()), (PageCount(41), PageCount(19)));
    // The tail of the inactive list was evicted; aged folios have the workingset flag.
    map::assert_cache("aged", &cache, "41w 19# 40.");
}

#[test]
fn both_lists_are_scanned_from_one_part_in_4096() {
    // Of 5000 and 9000: (1, 2), (2, 4), (4, 8), (9, 17), (19, 32), which evicts a batch.
    let mut cache = with_active(14_000, 9_000);
    assert_eq!(one_pass(&mut cache), PageCount(35));
    assert_eq!(cache.active(), PageCount(8937));
}

#[test]
fn aging_grows_with_scanned_pages() {
    // 40 inactive, the first 32 scanned are accessed; 100 active. A 64th: (0, 1). A 32nd of 41 and
    // 99: to evict one, 33 are scanned, so 33 x 99 / 41 are aged. Then (7, 1) of 119 and 20, (14,
    // 2) of 113 and 19, (25, 4) of 101 and 17, and 47 are evicted.
    let mut cache = with_active(140, 100);
    (100..132).for_each(|page| touch(&mut cache, page));
    assert_eq!(one_pass(&mut cache), PageCount(47));
    assert_eq!((cache.inactive(), cache.active()), (PageCount(80), PageCount(13)));
}

#[test]
fn aging_is_bounded_by_scanned_rounds_after_a_batch() {
    // 12 inactive, 109 active. Scanned of both: (0, 1), (0, 3), (1, 6), (2, 12), (7, 21). Half of
    // the remaining 45 and 66 is (22, 33), but these 22 complete a batch, so the batch of active
    // ones with them is the last.
    let mut cache = with_active(121, 109);
    assert_eq!(one_pass(&mut cache), PageCount(32));
    assert_eq!((cache.inactive(), cache.active()), (PageCount(55), PageCount(34)));
}

#[test]
fn accessed_pages_rotate_before_aging() {
    // All 40 inactive pages are accessed: the second scan evicts them, so the active ones stay.
    let mut cache = with_active(50, 10);
    (10..50).for_each(|page| touch(&mut cache, page));
    let found = reclaim(&mut cache, PageCount(1), 4096, &plain(), &mut ());
    assert_eq!((found, cache.active()), (PageCount(32), PageCount(10)));
}

#[test]
fn reclaim_ages_by_flushed_statistics() {
    // Active of 100 pages, whether the statistics are current, pages evicted, inactive, active.
    let cases = [
        (60, true, 40, 41, 19),
        (60, false, 32, 8, 60),
        // Not if both are equal.
        (50, true, 32, 18, 50),
    ];
    for (active, known, evicted, inactive, left) in cases {
        let mut cache = with_active(100, active);
        if known {
            cache.flush_statistics();
        }
        let found = reclaim(&mut cache, PageCount(1), 4096, &plain(), &mut ());
        let after = (found.0, cache.inactive().0, cache.active().0);
        assert_eq!(after, (evicted, inactive, left), "{active} active, known: {known}");
    }
}

#[test]
fn active_list_is_aged_if_nothing_else_is_evictable() {
    let mut cache = with_active(64, 64);
    let found = reclaim(&mut cache, PageCount(1), 4096, &plain(), &mut ());
    assert!(found >= PageCount(32), "{found:?}");
    assert_eq!(cache.inactive() + cache.active() + found, PageCount(64));
    // Pages being read cannot be evicted either.
    let mut cache = map::cache("40~ 8#");
    for page in [40, 41, 42, 43, 44, 45, 46, 47].repeat(2) {
        cache.mark_accessed(PageIndex(page));
    }
    let found = reclaim(&mut cache, PageCount(1), 4096, &plain(), &mut ());
    assert_eq!((found, cache.active()), (PageCount(8), PageCount(0)));
}

#[test]
fn aging_keeps_accessed_code() {
    let mut cache = with_active(8, 8);
    touch(&mut cache, 1);
    touch(&mut cache, 6);
    let split = Some(Split { pages: PageCount(4), prot: SplitProt::Exec });
    cache.age(PageCount(8), &mapped(FileMapping::new(part(0, 8), split)));
    assert_eq!((cache.inactive(), cache.active()), (PageCount(7), PageCount(1)));
    map::assert_cache("aged", &cache, "6w # w");
    // They were scanned: their entries are old now.
    cache.age(PageCount(1), &whole(executable(part(0, 8))));
    assert_eq!(cache.active(), PageCount(0));
}

#[test]
fn aging_stops_at_requested_pages() {
    let mut cache = with_active(8, 8);
    cache.age(PageCount(3), &plain());
    map::assert_cache("aged", &cache, "3w 5#");
    cache.age(PageCount(0), &plain());
    map::assert_cache("aged", &cache, "3w 5#");
    // Whole folios.
    let mut cache = map::cache("[--][--]");
    for page in [0, 0, 4, 4] {
        cache.mark_accessed(PageIndex(page));
    }
    cache.age(PageCount(1), &plain());
    map::assert_cache("aged", &cache, "[ww][--]");
    assert_eq!((cache.inactive(), cache.active()), (PageCount(4), PageCount(4)));
}

#[test]
fn aged_page_enters_inactive_head() {
    let mut cache = with_active(64, 2);
    cache.age(PageCount(2), &plain());
    reclaim(&mut cache, PageCount(60), 4096, &plain(), &mut ());
    map::assert_cache("gone with the rest", &cache, "64.");
    let mut cache = with_active(64, 2);
    cache.age(PageCount(2), &plain());
    reclaim(&mut cache, PageCount(32), 4096, &plain(), &mut ());
    map::assert_cache("behind the others", &cache, "ww 32. 30#");
}
