//! Small cases, worked out by hand, and all faults of a small mapping.

mod support;

use filemap_policy::{Bounds, Pages, State};
use support::plain::Plain;
use support::{LARGEST, asked, whole};

/// The answers to faults on `pages`, one after the other.
fn answers(pages: &[u64], bounds: Bounds) -> Vec<Vec<(u64, u64)>> {
    let mut state = State::new(LARGEST);
    pages.iter().map(|&page| asked(&mut state, page, bounds)).collect()
}

/// Only the first page of each window faults, and asks for the next: 4 times as long, and from 64
/// pages on a quarter of what was asked for so far.
#[test]
fn a_scan_faults_at_the_first_page_of_each_window() {
    let mut state = State::new(LARGEST);
    let bounds = whole(1 << 20);
    assert_eq!(asked(&mut state, 0, bounds), []);
    assert_eq!(asked(&mut state, 1, bounds), [(3, 6)]);
    let (mut wire, mut from, mut sizes) = (2, 6, Vec::new());
    for number in 0..40 {
        let size = [16, 64].get(number).copied().unwrap_or((from / 4).clamp(64, LARGEST));
        assert_eq!(asked(&mut state, wire, bounds), [(from + 1, from + size)], "page {wire}");
        (wire, from) = (from, from + size);
        sizes.push(size);
    }
    assert_eq!(sizes[..10], [16, 64, 64, 64, 64, 69, 86, 108, 135, 169]);
    assert_eq!(sizes[30..], [4096; 10]);
}

#[test]
fn a_scan_towards_the_start_is_the_same_the_other_way_round() {
    let answers = answers(&[999, 998, 997, 993], whole(1000));
    assert_eq!(answers, [vec![], vec![(994, 997)], vec![(978, 993)], vec![(914, 977)]]);
}

/// Pages are asked for one by one, 4, 8, 16 and 32 at a time, but for the first of each window.
#[test]
fn a_stride_is_one_after_four_equal_distances() {
    let bounds = whole(100_000);
    let mut state = State::new(LARGEST);
    for page in [7, 107, 207, 307] {
        assert_eq!(asked(&mut state, page, bounds), []);
    }
    assert_eq!(asked(&mut state, 407, bounds), [(607, 608), (707, 708), (807, 808)]);
    for (page, first, count) in [(507, 1007, 7), (907, 1807, 15), (1707, 3407, 31)] {
        let singles: Vec<_> = (0..count).map(|i| first + i * 100).map(|p| (p, p + 1)).collect();
        assert_eq!(asked(&mut state, page, bounds), singles, "page {page}");
    }
    assert_eq!(asked(&mut state, 3307, bounds).len(), 31);
    let back = answers(&[900, 800, 700, 600, 500], bounds);
    assert_eq!(back.last().unwrap(), &[(300, 301), (200, 201), (100, 101)]);
}

#[test]
fn strides_of_several_threads_by_turns_are_found() {
    let pages = [0, 50_000, 100, 50_007, 200, 50_014, 300, 50_021, 400];
    let answers = answers(&pages, whole(100_000));
    assert_eq!(answers.last().unwrap(), &[(600, 601), (700, 701), (800, 801)]);
}

#[test]
fn nothing_is_read_outside_of_the_mapping_and_the_file() {
    let bounds = Bounds { mapping: Pages { first: 10, end: 16 }, file_pages: 1000 };
    assert_eq!(answers(&[12, 13, 14], bounds), [vec![], vec![(15, 16)], vec![]]);
    assert_eq!(answers(&[14, 13, 12], bounds), [vec![], vec![(10, 12)], vec![]]);
    // The same at the end of the file, inside the mapping.
    let bounds = Bounds { mapping: Pages { first: 10, end: 1000 }, file_pages: 16 };
    assert_eq!(answers(&[12, 13, 14], bounds), [vec![], vec![(15, 16)], vec![]]);
    // A fault elsewhere says nothing: these are no three in a row.
    assert_eq!(answers(&[8, 9, 10, 16, 17], bounds), [vec![], vec![], vec![], vec![], vec![]]);
}

/// What lies beside an earlier fault by chance makes no stream; a third page does.
#[test]
fn a_neighbour_alone_is_chance_where_others_came_in_between() {
    let answers = answers(&[10, 500, 11, 900, 12], whole(1000));
    assert_eq!(answers, [vec![], vec![], vec![], vec![], vec![(14, 17)]]);
}

/// Memory is short, or a call read less: the rest of the window is asked for again.
#[test]
fn what_was_asked_for_and_is_missing_is_asked_for_again() {
    let answers = answers(&[0, 1, 2, 6, 10, 86], whole(1000));
    // The window of page 2 is 7..22, that of page 6 is 23..86. Page 10 was not there.
    let (again, after) = (vec![(11, 86)], vec![(88, 95)]);
    assert_eq!(answers[2..], [vec![(7, 22)], vec![(23, 86)], again, after]);
}

#[test]
fn the_largest_window_bounds_all_windows_and_0_switches_off() {
    let mut state = State::new(8);
    let mut page = 0;
    for _ in 0..50 {
        let asked = asked(&mut state, page, whole(1000));
        page = asked.first().map_or(page + 1, |range| range.0 - 1);
        assert!(asked.iter().all(|range| range.1 - range.0 <= 8), "{asked:?}");
    }
    let mut off = State::new(0);
    assert!((0..1000).all(|page| asked(&mut off, page, whole(1000)).is_empty()));
}

/// Ranges for calls that can ask for so many pages.
#[test]
fn pieces_are_in_the_order_of_the_stream() {
    let mut state = State::new(LARGEST);
    let last = |state: &mut State, pages: &[u64]| {
        pages.iter().map(|&page| state.fault(page, whole(1000))).last().unwrap()
    };
    let forward = last(&mut state, &[0, 1, 2]);
    let pieces = |reads: filemap_policy::Reads| -> Vec<(u64, u64)> {
        reads.pieces(7).map(|pages| (pages.first, pages.end)).collect()
    };
    assert_eq!((forward.pages(), pieces(forward)), (15, vec![(7, 14), (14, 21), (21, 22)]));
    let back = last(&mut state, &[900, 899, 898]);
    assert_eq!(pieces(back), [(887, 894), (880, 887), (879, 880)]);
    assert_eq!(back.pieces(0).count(), 15, "one page at a time at the least");
}

#[test]
fn the_state_is_small() {
    assert_eq!(size_of::<State>(), 1752);
}

/// Every row of six faults in a file of seven pages, in a mapping of it or of the five in the
/// middle: both implementations ask for the same pages, which are not those that fault.
#[test]
fn all_faults_of_a_small_file() {
    const PAGES: u64 = 7;
    for mapping in [Pages { first: 0, end: PAGES }, Pages { first: 1, end: PAGES - 1 }] {
        let bounds = Bounds { mapping, file_pages: PAGES };
        for number in 0..PAGES.pow(6) {
            let faults: Vec<u64> = (0..6).map(|at| number / PAGES.pow(at) % PAGES).collect();
            let (mut state, mut plain) = (State::new(LARGEST), Plain::new(LARGEST));
            for &page in &faults {
                let reads = state.fault(page, bounds);
                let pages: Vec<u64> = reads.ranges().flat_map(|at| at.first..at.end).collect();
                assert!(pages.iter().all(|&other| mapping.contains(other) && other != page));
                let mut sorted = pages.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, plain.fault(page, bounds), "{faults:?} at {page}");
            }
        }
    }
}
