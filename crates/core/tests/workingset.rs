//! Folios that return after their eviction.

use filemap_core::address::vma::Vma;
use filemap_core::cache::FileCache;
use filemap_core::lru::lists::{LruLists, Scan};
use filemap_core::lru::workingset::{is_kept, is_recent, late};
use filemap_core::units::{PageCount, PageIndex};

use crate::support::lists::{self, look_once, plain, touch, whole, with_active};
use crate::support::machine::part;
use crate::support::map;
use crate::support::one_file::OneFile;

#[test]
fn a_refault_within_the_active_list_is_recent() {
    let is_recent = |evicted, active| is_recent(100, evicted, PageCount(active));
    assert_eq!([is_recent(100, 0), is_recent(99, 0), is_recent(99, 1)], [true, false, true]);
    assert_eq!([is_recent(50, 50), is_recent(50, 49)], [true, false]);
}

#[test]
fn pages_that_return_in_the_order_of_their_eviction_are_late_one_by_one() {
    let cases = (0..12).flat_map(|gap| {
        (1..8).flat_map(move |pages| (0..9).map(move |active| (gap, pages, active)))
    });
    for (gap, pages, active) in cases {
        let (first, active) = (20, PageCount(active));
        let mut now = first + pages + gap;
        let expected = late(now, first, PageCount(pages), active);
        let mut found = 0;
        for evicted in first..first + pages {
            let recent = is_recent(now, evicted, active);
            now += u64::from(recent);
            found += u64::from(!recent);
        }
        assert_eq!(PageCount(found), expected, "{pages} pages, {gap} later, active {active:?}");
    }
}

#[test]
fn shadow_expires_after_as_many_evictions_as_pages() {
    let cases =
        [(100, 100, 0, true), (100, 99, 0, false), (100, 0, 100, true), (101, 0, 100, false)];
    for (now, evicted, capacity, kept) in cases {
        assert_eq!(is_kept(now, evicted, capacity), kept, "{evicted} {now} {capacity}");
    }
}

#[test]
fn a_page_that_returns_within_the_active_lists_size_becomes_active() {
    // Page 23 was evicted last, and 15 pages after page 8. The refault distance of page 16 is 8:
    // its own eviction counts.
    for (page, active) in [(23, 9), (17, 9), (16, 9), (15, 8), (8, 8)] {
        let mut cache = eight_active();
        add(&mut cache, page, 0);
        assert_eq!(cache.active(), PageCount(active), "page {page}");
        // Not flagged: it was not active when it was evicted.
        let drawn = map::draw(&cache, PageCount(24));
        assert_eq!(&drawn[page as usize..=page as usize], "#", "page {page}");
    }
    // A page that never was there has no shadow; a shadow serves once.
    let mut cache = eight_active();
    add(&mut cache, 40, 0);
    assert_eq!(cache.active(), PageCount(8));
}

#[test]
fn activation_advances_the_clock() {
    // 8 active, 16 evicted. Page 16 would return in time; three activations later it does not.
    let mut cache = with_evicted();
    for page in 24..27 {
        cache.mark_accessed(PageIndex(page));
        cache.mark_accessed(PageIndex(page));
    }
    assert_distance_of_16(cache, 11);
}

/// 27 pages, 8 of them active and the next 16 evicted.
fn with_evicted() -> OneFile {
    let mut cache = with_active(27, 8);
    for page in 8..24 {
        add_shadow(&mut cache, page);
    }
    cache
}

/// Checks that this many pages are active, and that the clock is at the distance of page 16; that
/// of page 15 is one more.
#[track_caller]
fn assert_distance_of_16(mut cache: OneFile, active: u64) {
    assert_eq!(cache.active(), PageCount(active));
    add(&mut cache, 15, 0);
    assert_eq!(cache.active(), PageCount(active));
    add(&mut cache, 16, 0);
    assert_eq!(cache.active(), PageCount(active + 1));
}

#[test]
fn reclaim_activation_advances_the_clock() {
    // As above, but reclaim finds three accessed pages of an executable mapping.
    let executable = whole(Vma { executable: true, ..part(0, 4096) });
    let mut cache = with_evicted();
    for page in 24..27 {
        touch(&mut cache, page);
    }
    assert_eq!(look_once(&mut cache, &executable), (0, 3));
    assert_distance_of_16(cache, 11);
}

#[test]
fn rotation_on_active_list_advances_the_clock() {
    // 8 active, accessed and executable, so ageing puts them back: the clock advances by 8.
    let executable = whole(Vma { executable: true, ..part(0, 4096) });
    let mut cache = eight_active();
    (0..8).for_each(|page| touch(&mut cache, page));
    // Each is rotated once; the second time none is accessed any more, and one moves.
    cache.age(PageCount(1), &executable);
    assert_eq!(cache.active(), PageCount(8), "one look at each");
    add(&mut cache, 23, 0);
    assert_eq!(cache.active(), PageCount(8), "9 away: its own eviction, and 8 put back");
}

/// 8 active pages of 24; the other 16 were evicted, one after the other.
fn eight_active() -> OneFile {
    let mut cache = with_active(24, 8);
    assert_eq!(look_once(&mut cache, &plain()).0, 16);
    cache
}

/// Adds a folio when the statistics are those of the lists.
fn add(cache: &mut OneFile, page: u64, order: u8) {
    cache.flush_statistics();
    lists::add(cache, page, order);
}

/// Evicts the tail of the inactive list, which is `page`.
fn add_shadow(cache: &mut OneFile, page: u64) {
    let shrunk = cache.shrink(Scan::until(PageCount(1)), &plain(), &mut ());
    assert_eq!(shrunk.evicted, PageCount(1));
    assert!(cache.folio(PageIndex(page)).is_none(), "{page} was not the tail");
}

#[test]
fn activated_refault_advances_the_clock() {
    // Page 23 returns: 9 active, the clock is one further: 16 is 9 away, 15 is 10 away.
    let mut cache = eight_active();
    add(&mut cache, 23, 0);
    assert_distance_of_16(cache, 9);
}

#[test]
fn a_page_that_was_active_returns_with_the_workingset_flag() {
    let mut cache = with_active(24, 16);
    cache.age(PageCount(8), &plain());
    map::assert_cache("aged", &cache, "8w 16#");
    look_once(&mut cache, &plain());
    map::assert_cache("evicted", &cache, "8. 8# 8.");
    // The flagged ones were evicted last, after 16 to 23.
    add(&mut cache, 7, 0);
    map::assert_cache("flagged", &cache, "7. w 8# 8.");
    assert_eq!(cache.active(), PageCount(9));
    // Flagged when it is evicted again, it returns flagged.
    cache.age(PageCount(9), &plain());
    look_once(&mut cache, &plain());
    assert_eq!(cache.active(), PageCount(0));
    let mut cache = with_active(24, 16);
    cache.age(PageCount(8), &plain());
    look_once(&mut cache, &plain());
    // One that returns too late gets nothing: after 8 evictions the active list is as long as its
    // distance, after 9 it is not.
    for (first, flagged) in [(0, true), (1, true)] {
        let mut cache = with_active(24, 16);
        cache.age(PageCount(8), &plain());
        look_once(&mut cache, &plain());
        add(&mut cache, first, 0);
        assert_eq!(cache.active() == PageCount(9), flagged, "{first}");
    }
}

#[test]
fn large_folio_uses_any_of_its_shadows() {
    let mut cache = eight_active();
    // Pages 20 to 23 were evicted last, within the active list's size.
    add(&mut cache, 20, 2);
    assert_eq!(cache.active(), PageCount(12));
    map::assert_cache("active", &cache, "8# 12. [--]");
    // A page without one next to it: 23 has a shadow, 24 to 27 have none.
    let mut cache = eight_active();
    add(&mut cache, 24, 2);
    assert_eq!(cache.active(), PageCount(8));
}
