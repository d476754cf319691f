//! `read(2)`: the same readahead state as faults, batches of folios, and accessed folios.

use filemap_core::cache::FileCache;
use filemap_core::fault::AccessKind;
use filemap_core::lru::lists::LruLists;
use filemap_core::readahead::{Limits, ReadaheadState};
use filemap_core::rules::{Family, Kernel};
use filemap_core::units::{PageCount, PageIndex};

use crate::support::engine::{Engine, Io};
use crate::support::machine::{KERNELS, limits, on, stream, xfs};
use crate::support::map;
use Kernel::{V6_12, V6_18};

fn file(kernel: Kernel) -> Limits {
    limits(kernel, PageCount(64))
}

/// Reads of whole pages one after the other: (first page, pages, course, cache).
type Reads<'a> = &'a [(u64, u64, &'a str, &'a str)];

#[track_caller]
fn check(limits: Limits, before: &str, reads: Reads<'_>) -> Engine {
    let mut engine = Engine::new(limits, Io::Immediate, before);
    for (index, pages, course, after) in reads {
        engine.read(*index, *pages);
        let case = format!("{} {index}+{pages} of {before}", limits.rules.kernel.name());
        assert_eq!(engine.course(), *course, "{case}");
        map::assert_cache(&case, &engine.cache, after);
    }
    engine
}

#[test]
fn a_stream_of_single_pages_in_large_folios() {
    // Each hit mark reads the next window; between them nothing is decided.
    let engine = check(
        file(V6_18),
        "64.",
        &[
            (0, 1, "stream:0+2-1", "#M 62."),
            // Order 2 trims 2 to 5 to 2 and 3, which are one folio.
            (1, 1, "async-read:2+2-2@2", "## {} 60."),
            (2, 1, "async-read:4+4-4@3", "## [] {--} 56."),
            (3, 1, "", "## [] {--} 56."),
            (4, 1, "async-read:8+8-8@4", "## [][--] {6-} 48."),
            (7, 1, "", "## [][--] {6-} 48."),
            // A read anywhere in the marked folio counts as one of its first page.
            (9, 1, "async-read:16+16-16@5", "## [][--][6-] {14-} 32."),
        ],
    );
    assert_eq!(engine.ra.previous_end, Some(10 * 4096));
    assert_eq!(engine.ra.mmap_miss, 0);
}

#[test]
fn a_stream_of_single_pages_in_base_pages() {
    check(
        file(V6_12),
        "64.",
        &[
            (0, 1, "stream:0+2-1 base:0+2-1", "#M 62."),
            (1, 1, "async-read:2+4-4 base:2+4-4", "## M3# 58."),
            (2, 1, "async-read:6+8-8 base:6+8-8", "6# M7# 50."),
            (5, 1, "", "6# M7# 50."),
            (6, 1, "async-read:14+16-16 base:14+16-16", "14# M15# 34."),
        ],
    );
}

#[test]
fn a_request_for_many_pages() {
    // The request of 20 pages is larger than the readahead size: the pages missing after the first
    // window are requested again, and belong to no stream until the read has ended.
    check(
        file(V6_12),
        "64.",
        &[(
            0,
            20,
            "stream:0+16-8 base:0+16-8 async-read:16+16-16 base:16+16-16 async-read:32+16-16 \
         base:32+16-16",
            "32# M15# 16.",
        )],
    );
}

#[test]
fn lone_reads_request_their_pages() {
    for kernel in KERNELS {
        let engine = check(
            file(kernel),
            "64.",
            &[
                (32, 1, "single:32+1-0 base:32+1-0", "32. # 31."),
                (8, 3, "single:8+3-0 base:8+3-0", "8. 3# 21. # 31."),
                // Around a page that is cached.
                (31, 3, "single:31+3-0 base:31+3-0", "8. 3# 20. 3# 30."),
            ],
        );
        assert_eq!(
            engine.ra,
            ReadaheadState { previous_end: Some(34 * 4096), ..stream(0, 0, 0, 0) }
        );
    }
}

#[test]
fn a_read_next_to_the_last_one_begins_a_stream() {
    for kernel in KERNELS {
        let base =
            |words: &str| if kernel == V6_12 { format!(" base:{words}") } else { String::new() };
        let course = format!("stream:33+2-1{}", base("33+2-1"));
        check(
            file(kernel),
            "64.",
            &[(32, 1, "single:32+1-0 base:32+1-0", "32. # 31."), (33, 1, &course, "32. ## M 29.")],
        );
    }
}

#[test]
fn the_end_of_the_file() {
    let mut engine = Engine::new(file(V6_18), Io::Immediate, "10.");
    // The last page has 100 bytes.
    let bytes = 9 * 4096 + 100;
    engine.read_bytes(8 * 4096, 5 * 4096, bytes);
    assert_eq!(engine.course(), "single:8+5-0 base:8+2-0");
    map::assert_cache("the end", &engine.cache, "8. ##");
    assert_eq!(engine.ra.previous_end, Some(bytes));
    // Beyond it nothing is read.
    engine.read_bytes(10 * 4096, 4096, bytes);
    assert_eq!(engine.course(), "");
    map::assert_cache("beyond", &engine.cache, "8. ##");
}

#[test]
fn parts_of_pages() {
    let mut engine = Engine::new(file(V6_18), Io::Immediate, "64.");
    let read = |engine: &mut Engine, offset, bytes| {
        engine.read_bytes(offset, bytes, 64 * 4096);
        (engine.course(), engine.ra.previous_end)
    };
    // Two bytes on two pages; then the rest of the second one.
    let single = "single:31+2-0 base:31+2-0".to_string();
    assert_eq!(read(&mut engine, 32 * 4096 - 1, 2), (single, Some(32 * 4096 + 1)));
    assert_eq!(read(&mut engine, 32 * 4096 + 1, 4095), (String::new(), Some(33 * 4096)));
    let stream = "stream:33+2-1".to_string();
    assert_eq!(read(&mut engine, 33 * 4096, 1), (stream, Some(33 * 4096 + 1)));
    map::assert_cache("parts", &engine.cache, "31. 3# M 29.");
}

#[test]
fn pages_of_64_kib() {
    let mut engine = Engine::new(on(Family::Arm64, 65536, file(V6_18)), Io::Immediate, "64.");
    engine.read(0, 1);
    engine.read(1, 1);
    map::assert_cache("large pages", &engine.cache, "## {} 60.");
    assert_eq!(engine.ra.previous_end, Some(2 * 65536));
}

#[test]
fn a_read_waits_for_each_window() {
    let mut engine = Engine::new(file(V6_18), Io::Waited, "64.");
    engine.read(0, 4);
    assert_eq!(engine.course(), "stream:0+8-4 wait:0");
    // Cached folios are looked up together, up to the first that is marked or being read.
    let mut engine = Engine::new(file(V6_18), Io::Waited, "4# ~ 59#");
    engine.read(2, 8);
    assert_eq!(engine.course(), "wait:4");
    let mut engine = Engine::new(file(V6_18), Io::Waited, "4# (--) 56#");
    engine.read(5, 2);
    assert_eq!(engine.course(), "wait:7");
}

#[test]
fn without_readahead_pages_are_read_one_by_one() {
    for kernel in KERNELS {
        let off = Limits { ra_pages: PageCount(0), ..file(kernel) };
        let course = "single:8+1-0 base:8+1-0 single:9+1-0 base:9+1-0";
        check(off, "64.", &[(8, 2, course, "8. ## 54.")]);
        // A mark stays where it is.
        check(off, "8. M# 54.", &[(8, 2, "", "8. M# 54.")]);
    }
}

#[test]
fn cached_read_makes_no_decision() {
    let mut engine = Engine::new(file(V6_18), Io::Immediate, "64#");
    engine.read(0, 64);
    assert_eq!(engine.course(), "");
    assert_eq!(engine.ra.previous_end, Some(64 * 4096));
}

#[test]
fn a_mark_inside_a_large_request_is_hit_once() {
    // 31 pages are looked up together; the marked one ends a batch. It requests what the read still
    // needs from there on: 4 pages, 12 to 15.
    for (kernel, course) in
        [(V6_12, "async-read:16+16-16 base:16+16-16"), (V6_18, "async-read:16+16-16@2")]
    {
        let mut engine = Engine::new(file(kernel), Io::Immediate, "12# M3# 48.");
        engine.ra = stream(0, 16, 4, 0);
        engine.read(0, 16);
        assert_eq!(engine.course(), course);
        assert!(!engine.cache.folio(PageIndex(12)).unwrap().marked);
    }
}

#[test]
fn a_mark_with_nothing_absent_behind_it() {
    check(file(V6_18), "8# M 31# 24.", &[(8, 1, "nothing-absent", "40# 24.")]);
}

#[test]
fn read_request_behind_foreign_mark() {
    // 4 pages to the gap, and 2 more requested: twice 6 pages.
    let course = "async-read:40+12-12 base:40+12-12";
    check(file(V6_12), "36. M3# 24.", &[(36, 2, course, "36. 4# M11# 12.")]);
}

#[test]
fn a_mark_in_a_large_folio_counts_from_its_first_page() {
    // The read starts at 38, the request counts from 36: 4 + 4 pages to the gap at 40. From 37, one
    // page inside the folio, the gap is found at 41.
    let read = (38, 2, "async-read:41+16-16@2", "36. [--] . M [] [--] [6-] # 7.");
    check(xfs(V6_12, PageCount(64)), "36. {--} 24.", &[read]);
}

#[test]
fn faults_and_reads_share_marks_and_counter_state() {
    // A read hits a mark that a fault set, and leaves the counter alone.
    let mut engine = Engine::new(file(V6_18), Io::Immediate, "64.");
    engine.fault(32, AccessKind::Read);
    engine.ra.mmap_miss = 7;
    engine.course();
    engine.read(36, 1);
    assert_eq!(engine.course(), "async-read:40+16-16@2");
    assert_eq!(engine.ra.mmap_miss, 7);
    // A fault hits a mark that the read set.
    engine.fault(40, AccessKind::Read);
    let course = engine.course();
    // Order 4 trims the end at 72 to 64.
    assert!(course.contains("async:56+8-8@4"), "{course}");
}

/// Number of active pages after these reads: (byte, bytes).
fn active_after(reads: &[(u64, u64)]) -> PageCount {
    let mut engine = Engine::new(file(V6_18), Io::Immediate, "64#");
    for (offset, bytes) in reads {
        engine.read_bytes(*offset, *bytes, 64 * 4096);
    }
    engine.cache.active()
}

const fn page(index: u64) -> u64 {
    index * 4096
}

#[test]
fn the_second_use_of_a_page_makes_it_active() {
    let cases: &[(&[(u64, u64)], u64)] = &[
        (&[(page(8), 4096)], 0),
        (&[(page(8), 16 * 4096)], 0),
        // One after the other.
        (&[(page(8), 4096), (page(9), 4096), (page(10), 4096)], 0),
        // Reads that start in the page in which the last one ended are the same use of it.
        (&[(page(8), 4096), (page(8), 4096)], 0),
        (&[(page(8), 100), (page(8) + 100, 100), (page(8) + 200, 100)], 0),
        (&[(0, 4096), (0, 4096), (0, 4096)], 0),
        (&[(page(8), 8192), (page(9), 4096)], 0),
        // Back from another page: a second use.
        (&[(page(8), 4096), (page(20), 4096), (page(8), 4096)], 1),
        (&[(page(8), 8192), (page(8), 4096)], 1),
        // A third and a fourth change nothing.
        (&[(page(8), 8192), (page(8), 4096), (page(9), 1), (page(8), 1), (page(9), 1)], 2),
    ];
    for (reads, active) in cases {
        assert_eq!(active_after(reads), PageCount(*active), "{reads:?}");
    }
}

#[test]
fn a_last_read_that_ended_at_the_start_used_no_page() {
    let mut engine = Engine::new(file(V6_18), Io::Immediate, "64#");
    engine.cache.mark_accessed(PageIndex(0));
    engine.ra.previous_end = Some(0);
    engine.read(0, 1);
    assert_eq!(engine.cache.active(), PageCount(1));
}

#[test]
fn only_the_first_page_of_a_read_can_be_the_same_use() {
    // Seen on 6.18, in the page flags.
    assert_eq!(active_after(&[(page(8), 8192), (page(8), 8192)]), PageCount(2));
    assert_eq!(active_after(&[(page(8), 4096), (page(7), 8192)]), PageCount(1));
}

#[test]
fn the_second_use_of_a_large_folio_makes_all_of_it_active() {
    let mut engine = Engine::new(file(V6_18), Io::Immediate, "32. [6-] 24#");
    engine.read(32, 1);
    engine.read(35, 1);
    assert_eq!(engine.cache.active(), PageCount(0));
    engine.read(50, 1);
    engine.read(35, 1);
    assert_eq!(engine.cache.active(), PageCount(8));
    assert_eq!(engine.cache.inactive(), PageCount(24));
}
