//! Results of searches for the end of cached pages, and by how much they are off inside large
//! folios.
//!
//! Each case that is off is worked out by hand: the search stands on a slot of the index and counts
//! a page, and both advance by one; a large folio is found in its first slot.

use filemap_core::readahead::search::{cached_before, first_absent};
use filemap_core::rules::Kernel::{self, V7_1, V7_2};
use filemap_core::rules::Rules;
use filemap_core::series::Series;
use filemap_core::units::{PageCount, PageIndex};

use crate::support::map;

/// Searches of a file in the state `map`: start, maximum number of pages, and result.
#[track_caller]
fn forward(map: &str, searches: &[(u64, u64, Option<u64>)]) {
    let cache = map::cache(map);
    for &(from, max, found) in searches {
        let first = first_absent(PageIndex(from), PageCount(max), &cache);
        assert_eq!(first, found.map(PageIndex), "{max} pages from {from} of {map}");
    }
}

/// The same for searches towards the start of the file, which count pages.
#[track_caller]
fn backward(map: &str, searches: &[(u64, u64, u64)]) {
    backward_by(V7_1, map, searches);
}

#[track_caller]
fn backward_by(kernel: Kernel, map: &str, searches: &[(u64, u64, u64)]) {
    let (cache, rules) = (map::cache(map), Rules::new(kernel, Series::BASELINE));
    for &(last, max, count) in searches {
        let counted = cached_before(PageIndex(last), PageCount(max), &rules, &cache);
        assert_eq!(counted, PageCount(count), "{max} pages up to {last} of {map}");
    }
}

#[test]
fn base_pages_are_searched_exactly() {
    forward(". 7#", &[(0, 1, Some(0))]);
    forward("## 6.", &[(0, 9, Some(2))]);
    forward("##.#.", &[(0, 9, Some(2)), (2, 9, Some(2)), (3, 9, Some(4))]);
    forward("~~M.", &[(0, 9, Some(3))]);
    // Across the 64 pages of a node.
    forward("62. 6# 4.", &[(62, 20, Some(68))]);
    forward("60. 70# 6.", &[(60, 100, Some(130))]);
}

#[test]
fn a_search_ends_with_its_last_page() {
    forward("8# 8.", &[(0, 8, None), (0, 9, Some(8)), (5, 3, None), (5, 4, Some(8)), (0, 1, None)]);
}

#[test]
fn a_search_from_inside_a_large_folio_counts_too_far() {
    for (from, found) in [(0, 8), (1, 9), (3, 11), (7, 15), (8, 8)] {
        forward("[6-] . 7#", &[(from, 64, Some(found))]);
    }
    // The offset within the first folio stays; those of later folios do not add.
    for (from, found) in [(3, 23), (8, 20), (9, 21), (17, 20)] {
        forward("[6-][6-] 4# 4.", &[(from, 64, Some(found))]);
    }
    forward("[][] 4.", &[(1, 64, Some(5))]);
    // Its count decides whether it is still within its bounds.
    forward("[6-] 8.", &[(3, 8, None), (3, 9, Some(11))]);
}

#[test]
fn inexact_search_skips_pages_at_node_boundary() {
    // From 59 it stands 3 pages back, on 63 when it counts 66; then it looks at 67.
    forward("56. [6-] #. 10# 4.", &[(59, 64, Some(76)), (56, 64, Some(65))]);
    forward("56. [6-] 4# . 3# .", &[(59, 64, Some(68))]);
    // A missing node: the page that it counts.
    forward("56. [6-] 12.", &[(59, 64, Some(67)), (59, 8, None), (56, 64, Some(64))]);
}

#[test]
fn a_search_from_inside_a_folio_of_64_pages_is_exact() {
    for from in [0, 1, 5, 63] {
        forward("[62-] 3# 5.", &[(from, 100, Some(67))]);
    }
    forward("[62-] 3# 5.", &[(5, 62, None), (5, 63, Some(67))]);
    // Larger ones take several slots, and a search reaches its own slot in as many steps.
    for from in [0, 63, 64, 70, 126] {
        forward("[126-] 4# 4.", &[(from, 200, Some(132))]);
    }
    forward("[254-] . 3# 4.", &[(250, 100, Some(256))]);
}

#[test]
fn a_search_near_the_end_of_a_larger_folio_skips_pages_behind_it() {
    // From 254, in the folio's fourth slot of 64: it is found in the first, three steps before.
    // Counting 257 it stands on the fourth; then it looks at 258.
    forward(
        "[254-] . 3# 4.",
        &[(254, 100, Some(260)), (253, 100, Some(260)), (252, 100, Some(256))],
    );
}

#[test]
fn base_pages_are_counted_exactly() {
    backward(". 5# .", &[(6, 64, 0), (5, 64, 5), (1, 64, 1)]);
    backward("5#", &[(4, 64, 5)]);
    backward("#", &[(0, 64, 1)]);
    backward(".", &[(0, 64, 0)]);
    backward("#. 3#", &[(4, 64, 3)]);
    backward("60. 10# .", &[(69, 64, 10)]);
    backward("10. 130#", &[(139, 500, 130)]);
}

#[test]
fn count_without_gap_is_one_less_than_pages_scanned() {
    // Seen on 6.18: 2048 pages looked at and cached count as 2047.
    for (max, count) in [(1, 0), (2, 1), (8, 7), (15, 14), (16, 15), (17, 16), (64, 16)] {
        backward("16#", &[(15, max, count)]);
    }
    for (max, count) in [(1, 0), (4, 3), (5, 4), (6, 5), (7, 5)] {
        backward("3. 5#", &[(7, max, count)]);
    }
    backward(".. ## [--]", &[(7, 3, 2), (7, 4, 3)]);
}

#[test]
fn a_count_from_inside_a_large_folio_misses_the_offset() {
    // From 7 it looks at 4, 3, 2, 1: four pages, the last of them absent.
    for (last, count) in [(7, 3), (6, 3), (5, 3), (4, 3), (3, 2)] {
        backward(".. ## [--]", &[(last, 64, count)]);
    }
    backward("8. [6-] [--]", &[(19, 64, 9), (16, 64, 9)]);
    backward("8. [6-]", &[(15, 64, 1)]);
    // At the start of the file it falls off before its count is at 0.
    for (last, count) in [(0, 1), (1, 2), (2, 1), (3, 1)] {
        backward("[--]", &[(last, 64, count)]);
    }
    backward("4# [--]", &[(4, 64, 5), (7, 64, 5)]);
}

#[test]
fn inexact_count_enters_previous_node_at_wrong_slot() {
    // From 66 it stands on 64 and counts 65 next: that slot of the node before is page 1.
    backward("60. 4# [--]", &[(66, 100, 1)]);
    backward("64# [--]", &[(66, 100, 3)]);
    backward("128# [--]", &[(130, 200, 67)]);
    // From 65 it looks at 64 twice, and is exact from there on.
    backward("60. 4# [--]", &[(65, 100, 6), (64, 100, 5)]);
}

#[test]
fn a_count_from_inside_a_folio_of_64_pages_is_exact() {
    for last in [0, 1, 40, 63] {
        backward("[62-]", &[(last, 100, last + 1)]);
    }
    backward("63. # [62-]", &[(127, 100, 65), (64, 100, 2)]);
}

#[test]
fn a_count_from_far_inside_a_larger_folio_steps_before_it() {
    // A step that leaves it after the folio's first 64 pages leaves the folio.
    backward("[126-]", &[(63, 200, 64), (64, 200, 65), (65, 200, 1), (127, 200, 1)]);
    // From 200, slot 7 of the 64 pages before: page 71.
    backward("100. 28# [126-]", &[(200, 300, 1)]);
    backward("64. 64# [126-]", &[(200, 300, 9), (191, 300, 128), (192, 300, 129)]);
    // Two levels up and down again: from 4166 to slots 1 and 5 of the nodes before, page 69.
    backward("66. 4# 4026. [254-]", &[(4166, 500, 5)]);
}

#[test]
fn a_full_search_backwards_counts_all_pages_since_7_2() {
    for (kernel, full) in [(V7_1, 3), (V7_2, 4)] {
        backward_by(kernel, ". 9#", &[(9, 4, full), (9, 9, full + 5), (9, 10, 9), (9, 12, 9)]);
        // If all is cached from the start of the file, it ends there.
        backward_by(kernel, "10#", &[(3, 9, 4), (3, 4, full)]);
        backward_by(kernel, "[6-][6-]", &[(12, 4, full)]);
    }
}
