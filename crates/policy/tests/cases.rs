//! Small cases with results computed by hand.

use crate::support::{COSTS, Governed, LARGEST, Random, asked, whole};
use filemap_policy::{Bounds, Costs, FilePolicy, PageRange, TouchKind};

/// The requests after each fault on `pages`.
fn answers(pages: &[u64], bounds: Bounds) -> Vec<Vec<(u64, u64)>> {
    let mut state = FilePolicy::new(LARGEST, COSTS);
    pages.iter().map(|&page| asked(&mut state, page, bounds)).collect()
}

/// Pages of one region that form neither stream nor stride, each in another block.
fn scattered(region: u64, number: u64) -> u64 {
    let block = (number as u8).reverse_bits() >> 4;
    region * 512 + u64::from(block) * 32 + number * 7 % 32
}

fn minor(state: &mut FilePolicy, page: u64, bounds: Bounds) -> Vec<(u64, u64)> {
    let reads = state.on_fault(page, TouchKind::Minor, bounds);
    reads.ranges().map(|pages| (pages.first, pages.end)).collect()
}

/// The next window is requested when the program enters the last one, which a minor fault shows.
/// Windows grow by a factor of 4, and from 64 pages on are limited to a quarter of the stream so
/// far.
#[test]
fn a_scan_is_followed_by_its_minor_faults() {
    let (bounds, mut state) = (whole(1 << 20), FilePolicy::new(LARGEST, COSTS));
    assert_eq!(asked(&mut state, 0, bounds), []);
    assert_eq!(asked(&mut state, 1, bounds), [(2, 6)]);
    assert_eq!(minor(&mut state, 2, bounds), [(6, 22)]);
    assert_eq!(minor(&mut state, 3, bounds), []);
    assert_eq!(minor(&mut state, 16, bounds), [(22, 86)]);
    assert_eq!(minor(&mut state, 32, bounds), [(86, 150)]);
    let (mut from, mut sizes) = (150, Vec::new());
    for page in (48..100_000).step_by(16) {
        for (first, end) in minor(&mut state, page, bounds) {
            assert_eq!(first, from);
            (from, sizes) = (end, [sizes, vec![end - first]].concat());
        }
    }
    assert_eq!((sizes[0], *sizes.last().unwrap()), (64, LARGEST));
    assert!(sizes.is_sorted() && from > 100_000);
}

/// A major fault on a requested page continues the stream like a minor fault.
#[test]
fn a_scan_that_is_faster_than_the_device_is_followed() {
    let answers = answers(&[0, 1, 2, 6], whole(1 << 20));
    assert_eq!(answers, [vec![], vec![(2, 6)], vec![(6, 22)], vec![(22, 86)]]);
}

#[test]
fn a_scan_towards_the_start_is_the_same_the_other_way_round() {
    let answers = answers(&[9999, 9998, 9997, 9993], whole(20_000));
    assert_eq!(answers, [vec![], vec![(9994, 9998)], vec![(9978, 9994)], vec![(9914, 9978)]]);
}

/// Elements are requested as single pages, 4, 8, 16 and then 32 at a time.
#[test]
fn a_stride_is_one_after_four_equal_distances() {
    let (bounds, mut state) = (whole(100_000), FilePolicy::new(LARGEST, COSTS));
    let singles = |first: u64, count: u64| -> Vec<(u64, u64)> {
        (0..count).map(|number| first + number * 100).map(|page| (page, page + 1)).collect()
    };
    for page in [7, 107, 207, 307] {
        assert_eq!(asked(&mut state, page, bounds), []);
    }
    assert_eq!(asked(&mut state, 407, bounds), singles(507, 4));
    assert_eq!(minor(&mut state, 507, bounds), singles(907, 8));
    assert_eq!(minor(&mut state, 907, bounds), singles(1707, 16));
    assert_eq!(minor(&mut state, 1707, bounds), singles(3307, 32));
    let back = answers(&[9000, 8900, 8800, 8700, 8600], whole(10_000));
    assert_eq!(back.last().unwrap()[..2], [(8500, 8501), (8400, 8401)]);
}

/// Strides are detected per thread, however the faults are interleaved.
#[test]
fn strides_of_several_threads_are_found() {
    let (bounds, mut state) = (whole(100_000), FilePolicy::new(LARGEST, COSTS));
    let turns = [0, 0, 1, 0, 1, 1, 0, 1];
    let mut next = [0, 50_000];
    for thread in turns {
        state.set_thread(thread);
        let page = &mut next[thread as usize];
        assert_eq!(asked(&mut state, *page, bounds), []);
        *page += 100 + 7 * thread;
    }
    for thread in [0, 1] {
        state.set_thread(thread);
        assert_eq!(asked(&mut state, next[thread as usize], bounds).len(), 4);
    }
}

#[test]
fn nothing_is_read_outside_of_the_mapping_and_the_file() {
    let bounds = Bounds { mapping: PageRange { first: 10, end: 16 }, file_pages: 1000 };
    let file = Bounds { mapping: PageRange { first: 10, end: 1000 }, file_pages: 16 };
    for bounds in [bounds, file] {
        for page in 8..20 {
            for asked in answers(&[page, page + 1, page + 2], bounds).concat() {
                assert!(10 <= asked.0 && asked.1 <= 16, "{asked:?}");
            }
        }
    }
}

/// A neighbour of an earlier fault is no stream if other faults came in between; a third adjacent
/// page is. The first two pages lie in different blocks, so that no block is bought.
#[test]
fn a_neighbour_alone_is_chance_where_others_came_in_between() {
    let answers = answers(&[31, 5000, 32, 9000, 33], whole(10_000));
    assert_eq!(answers[..4], [const { vec![] }; 4]);
    assert_eq!(answers[4], [(34, 38)]);
}

/// A region costs 512 x 3 us and a fault 80 us, so 20 faults cost as much as a region. The 19th
/// fault reaches 95 % of the price of the remaining pages, the threshold for regions.
#[test]
fn a_region_is_bought_when_its_faults_have_cost_as_much() {
    let mut state = FilePolicy::new(LARGEST, COSTS);
    let faults: Vec<_> = (0..19)
        .map(|number| asked(&mut state, scattered(3, number % 16) + number / 16, whole(1 << 20)))
        .collect();
    let bought = faults.iter().position(|asked| asked.contains(&(1536, 2048)));
    assert_eq!(bought, Some(18), "{faults:?}");
    assert!(faults[..18].iter().all(Vec::is_empty));
    // Under memory pressure nothing is bought; costlier faults then buy the region at the next one.
    let mut state = FilePolicy::new(LARGEST, COSTS);
    state.set_memory_short(true);
    for number in 0..16 {
        assert_eq!(asked(&mut state, scattered(3, number), whole(1 << 20)), []);
    }
    state.set_costs(Costs { fault_ns: 400_000, page_ns: 3_000 });
    state.set_memory_short(false);
    let again = scattered(3, 1) + 1;
    assert!(asked(&mut state, again, whole(1 << 20)).contains(&(1536, 2048)));
}

/// Use of regions that were read ahead earns credit: the next regions are bought at their first
/// fault, and later ones before the program reaches them.
#[test]
fn regions_that_are_used_buy_the_next_ones() {
    let mut governed = Governed::new(1 << 20, COSTS);
    let faults = (0..20).map(|region| {
        let before = governed.faults;
        (0..512).for_each(|number| governed.touch(region * 512 + number * 37 % 512));
        governed.faults - before
    });
    let faults: Vec<u64> = faults.collect();
    assert!(faults[0] <= 20 && faults[1] <= 4, "{faults:?}");
    assert!(faults[2..].iter().all(|&count| count <= 1), "{faults:?}");
}

/// Isolated random pages earn nothing.
#[test]
fn a_few_random_pages_of_a_large_file_buy_nothing() {
    let mut random = Random::NEW;
    let governed = Governed::after(1 << 20, random.pages(200, 1 << 20));
    assert_eq!((governed.read, governed.faults), (200, 200));
}

/// Four threads that fault in turn wait concurrently, so a fault counts a quarter and a region is
/// bought after more faults.
#[test]
fn faults_of_several_threads_cost_less() {
    let faults = |threads: u64| {
        let mut governed = Governed::new(1 << 20, COSTS);
        for number in 0..512 {
            governed.state.set_thread(number % threads);
            governed.touch(number * 37 % 512);
        }
        governed.faults
    };
    let (one, four) = (faults(1), faults(4));
    assert!(one <= 20 && 3 * one < four && four <= 80, "{one} and {four}");
}

#[test]
fn the_largest_window_bounds_all_windows_and_0_switches_off() {
    let mut state = FilePolicy::new(8, COSTS);
    for page in 0..500 {
        let asked = asked(&mut state, page, whole(1000));
        assert!(asked.iter().all(|range| range.1 - range.0 <= 8), "{asked:?}");
    }
    let mut off = FilePolicy::new(0, COSTS);
    assert!((0..1000).all(|page| asked(&mut off, page, whole(1000)).is_empty()));
}

/// Requests are split into calls of at most 7 pages.
#[test]
fn pieces_are_in_the_order_of_the_stream() {
    let mut state = FilePolicy::new(LARGEST, COSTS);
    let mut last = |pages: &[u64]| {
        let answers =
            pages.iter().map(|&page| state.on_fault(page, TouchKind::Major, whole(100_000)));
        answers.last().unwrap()
    };
    let pieces = |reads: &filemap_policy::ReadPlan| -> Vec<(u64, u64)> {
        reads.pieces(7).map(|pages| (pages.first, pages.end)).collect()
    };
    let forward = last(&[0, 1, 2]);
    assert_eq!((forward.pages(), pieces(&forward)), (16, vec![(6, 13), (13, 20), (20, 22)]));
    let back = last(&[90_000, 89_999, 89_998]);
    assert_eq!(pieces(&back), [(89_988, 89_995), (89_981, 89_988), (89_979, 89_981)]);
    assert_eq!(back.pieces(0).count(), 16, "one page at a time at the least");
}

/// A file of `pages` pages with kernel windows of 32 pages, after `touches`.
fn with_short_windows(pages: u64, touches: impl IntoIterator<Item = u64>) -> Governed {
    let mut governed = Governed::with_window(pages, COSTS, 32);
    touches.into_iter().for_each(|page| governed.touch(page));
    governed
}

#[test]
fn a_file_is_left_to_the_kernel_where_its_windows_are_used() {
    let mut random = Random::NEW;
    let starts = random.pages(300, 199_000);
    let of_object = |start: u64| [0, 7, 3, 11, 5, 9].map(|number| start + number);
    let objects = with_short_windows(200_000, starts.into_iter().flat_map(of_object));
    assert!(objects.state.is_left_to_kernel(), "one window has a whole object");
    let dense = with_short_windows(16_384, random.pages(12_000, 16_384));
    assert!(dense.state.is_left_to_kernel(), "it goes all over a small file");
    let most = dense.kernel_ns() * 3 / 2 + 32 * COSTS.fault_ns;
    assert!(dense.cost_ns() < most, "{} of {}", dense.cost_ns(), dense.kernel_ns());
}

#[test]
fn a_file_is_not_left_to_the_kernel_where_its_windows_are_not_used() {
    let mut random = Random::NEW;
    let sparse = with_short_windows(200_000, random.pages(3000, 200_000));
    assert!(!sparse.state.is_left_to_kernel());
    assert_eq!(sparse.read, sparse.touched(), "nothing else is read");
    let long = with_short_windows(2_000_000, random.pages(20_000, 2_000_000));
    assert!(!long.state.is_left_to_kernel(), "old windows do not count for ever");
    let scan = with_short_windows(50_000, 0..50_000);
    assert!(!scan.state.is_left_to_kernel(), "a stream reads it as well");
}
