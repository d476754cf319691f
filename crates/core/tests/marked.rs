//! A hit on a cached folio: the counter falls, and a mark triggers the next window.

use filemap_core::address::vma::Advice;
use filemap_core::cache::FileCache;
use filemap_core::decision::Cause;
use filemap_core::readahead::marked::{MarkHit, on_fault_hit};
use filemap_core::readahead::{Limits, ReadaheadState};
use filemap_core::rules::Kernel;
use filemap_core::units::{PageCount, PageIndex};

use crate::support::engine::{Engine, Io};
use crate::support::machine::{KERNELS, advised, counter, executable, limits, stream, whole, xfs};
use crate::support::map;
use Kernel::{V6_12, V6_18};

fn ext4(kernel: Kernel) -> Limits {
    limits(kernel, PageCount(64))
}

fn large(kernel: Kernel) -> Limits {
    xfs(kernel, PageCount(64))
}

/// A fault that finds `index` in the cache.
fn hit(engine: &mut Engine, index: u64) -> Option<MarkHit> {
    let index = PageIndex(index);
    let folio = engine.cache.folio(index).expect("a hit needs a folio");
    let Engine { limits, vma, ra, cache, log, .. } = engine;
    let hit = on_fault_hit(index, folio, vma, limits, ra, cache, log);
    if let Some(MarkHit { window: Some(window) }) = hit {
        assert_eq!(window.cause, Cause::AsyncFault);
        assert_eq!(window.async_size, window.size);
        engine.read_window(window);
    }
    hit
}

/// A hit in a file in the state `before`, then `after`; the readahead state before and after.
#[track_caller]
fn check(
    limits: Limits,
    index: u64,
    states: [ReadaheadState; 2],
    before: &str,
    after: &str,
) -> Engine {
    let mut engine = Engine::new(limits, Io::Waited, before);
    engine.ra = states[0];
    hit(&mut engine, index);
    let case = format!("{} hit on {index} of {before}", limits.rules.kernel.name());
    map::assert_cache(&case, &engine.cache, after);
    assert_eq!(engine.ra, states[1], "{case}");
    engine
}

#[test]
fn stream_mark_advances_the_stream() {
    // Read-around of 32 left pages 24 to 39, the mark at 36.
    let cases = [
        (ext4(V6_18), (16, 2), "24. 16# <-->(--)(--)(--) 8."),
        // 6.12: base pages on ext4; with large folios the order grows in the layout, not in `ra`.
        (ext4(V6_12), (16, 0), "24. 16# m15~ 8."),
        (large(V6_12), (16, 0), "24. 16# <-->(--)(--)(--) 8."),
    ];
    check_around(24, "24. 12# M3# 24.", &cases);
}

/// A hit on the mark of the 16 pages that read-around left from `start` on: for each machine the
/// size and the order of the next window, and the file after it.
#[track_caller]
fn check_around(start: u64, before: &str, cases: &[(Limits, (u64, u8), &str)]) {
    let around = stream(start, 16, 4, 0);
    for &(limits, (size, order), after) in cases {
        let next = stream(start + 16, size, size, order);
        check(limits, start + 12, [around, next], before, after);
    }
}

#[test]
fn the_end_of_the_window_is_trimmed_to_its_order_since_6_18() {
    let cases = [
        (ext4(V6_18), (13, 2), "23. 16# m (--)(--)(--) 12."),
        (large(V6_12), (16, 0), "23. 16# m (--)(--)(--) () ~ 9."),
        (ext4(V6_12), (16, 0), "23. 16# m15~ 9."),
    ];
    check_around(23, "23. 12# M3# 25.", &cases);
}

#[test]
fn trimming_keeps_to_the_alignment_of_the_largest_window() {
    // 18 = 2 x 9: multiples of 2, although the order has grown to 2. 59 becomes 58, not 56.
    let odd = Limits { ra_pages: PageCount(18), ..ext4(V6_18) };
    let states = [stream(23, 18, 4, 0), stream(41, 17, 17, 2)];
    check(odd, 37, states, "23. 14# M3# 23.", "23. 18# m () (--)(--)(--) () 6.");
    // 15 is odd: nothing is trimmed. The window of 15 pages is laid out from 40.
    let odd = Limits { ra_pages: PageCount(15), ..ext4(V6_18) };
    let states = [stream(25, 15, 4, 0), stream(40, 15, 15, 2)];
    check(odd, 36, states, "25. 11# M3# 24.", "25. 15# <-->(--)(--) () ~ 9.");
}

#[test]
fn trimming_leaves_a_window_that_it_would_empty() {
    let small = Limits { ra_pages: PageCount(4), ..ext4(V6_18) };
    // 41 to 42: the multiple of 4 below the end lies before the start.
    let states = [stream(40, 1, 1, 0), stream(41, 2, 2, 1)];
    check(small, 40, states, "40. M 23.", "40. # m~ 21.");
    // 40 to 41: it is the start.
    let states = [stream(39, 1, 1, 0), stream(40, 2, 2, 1)];
    check(small, 39, states, "39. M 24.", "39. # <> 22.");
}

#[test]
fn a_stream_grows_in_size_and_order() {
    // The stream started by a read of one page at the start of the file.
    let mut engine = Engine::new(ext4(V6_18), Io::Immediate, "#M 62.");
    engine.ra = stream(0, 2, 1, 0);
    let course = [
        // Order 2 trims the window of 4 pages at 2 to one of 2, which order 1 fills.
        (1, "## {} 60.", stream(2, 2, 2, 1)),
        (2, "## [] {--} 56.", stream(4, 4, 4, 2)),
        (4, "## [][--] {6-} 48.", stream(8, 8, 8, 3)),
        (8, "## [][--][6-] {14-} 32.", stream(16, 16, 16, 4)),
        (16, "## [][--][6-][14-] {14-} 16.", stream(32, 16, 16, 4)),
        (32, "## [][--][6-][14-][14-] {14-}", stream(48, 16, 16, 4)),
        (48, "## [][--][6-][14-][14-][14-]", stream(64, 16, 16, 4)),
    ];
    check_course(&mut engine, &course);
}

/// Hits one mark after the other: the cache and the readahead state after each.
#[track_caller]
fn check_course(engine: &mut Engine, course: &[(u64, &str, ReadaheadState)]) {
    for (index, after, ra) in course {
        hit(engine, *index);
        map::assert_cache(&format!("the mark at {index}"), &engine.cache, after);
        assert_eq!(engine.ra, *ra, "the mark at {index}");
    }
}

#[test]
fn on_6_12_the_order_grows_from_the_marked_folio() {
    let mut engine = Engine::new(large(V6_12), Io::Immediate, "#M 62.");
    engine.ra = stream(0, 2, 1, 0);
    let course = [
        (1, "## {} [] 58.", stream(2, 4, 4, 0)),
        // From order 1, with which the layout of 8 pages at 6 starts.
        (2, "## [][] {} [--] [] 50.", stream(6, 8, 8, 0)),
    ];
    check_course(&mut engine, &course);
}

#[test]
fn the_next_window_is_never_smaller() {
    // A read beyond the readahead size left a window of 24 pages.
    let states = [stream(0, 24, 4, 0), stream(24, 24, 24, 2)];
    let after = "24# <-->(--)(--)(--)(--)(--) 16.";
    check(ext4(V6_18), 20, states, "20# M3# 40.", after);
    // Far below the maximum it is four times as large: 12 pages, trimmed to 9.
    let wide = Limits { ra_pages: PageCount(64), ..ext4(V6_18) };
    let states = [stream(0, 3, 1, 0), stream(3, 9, 9, 2)];
    check(wide, 2, states, "##M 61.", "3# m (--)(--) 52.");
}

#[test]
fn foreign_mark_reads_absent_pages() {
    let new = ReadaheadState::NEW;
    let before = "36. M3# 24.";
    let found = [new, stream(40, 16, 16, 2)];
    check(ext4(V6_18), 36, found, before, "36. 4# <-->(--)(--)(--) 8.");
    check(ext4(V6_12), 36, [new, stream(40, 16, 16, 0)], before, "36. 4# m15~ 8.");
    // A stream elsewhere, also ahead of the mark.
    check(ext4(V6_12), 36, [stream(0, 16, 4, 0), stream(40, 16, 16, 0)], before, "36. 4# m15~ 8.");
    check(ext4(V6_12), 36, [stream(50, 4, 1, 0), stream(40, 16, 16, 0)], before, "36. 4# m15~ 8.");
    // One page off from where the stream expects it.
    check(ext4(V6_12), 36, [stream(23, 16, 4, 0), stream(40, 16, 16, 0)], before, "36. 4# m15~ 8.");
    check(ext4(V6_12), 36, [stream(25, 16, 4, 0), stream(40, 16, 16, 0)], before, "36. 4# m15~ 8.");
    // The gap just after the mark.
    check(ext4(V6_12), 36, [new, stream(37, 16, 16, 0)], "36. M 27.", "36. # m15~ 11.");
}

#[test]
fn the_search_behind_a_mark_ends_with_the_largest_window() {
    let new = ReadaheadState::NEW;
    // The 16th page after the mark is absent.
    let found = [new, stream(52, 16, 16, 2)];
    check(ext4(V6_18), 36, found, "36. M15# 12.", "36. 16# <-->(--)(--)");
    // All 16 are cached: the mark is cleared, and nothing is read.
    let engine = &mut check(ext4(V6_18), 36, [new, new], "36. M16# 11.", "36. 17# 11.");
    assert_eq!(engine.course(), "nothing-absent");
}

#[test]
fn a_search_that_begins_inside_a_large_folio_counts_too_far() {
    // The stream expects its mark at 38, in the folio at 36: a hit on 36 moves it on.
    let before = "24. 12# {--} 24.";
    let old = stream(24, 16, 2, 2);
    let moved = [old, stream(40, 8, 8, 3)];
    check(ext4(V6_18), 36, moved, before, "24. 12# [--] <6-> 16.");
    check(large(V6_12), 36, [old, stream(40, 16, 16, 2)], before, "24. 12# [--] <6->(6-) 8.");
    // A hit on 37 searches from 38, 2 pages into the folio, and finds 40 as 42.
    let jumped = [old, stream(42, 6, 6, 2)];
    check(ext4(V6_18), 37, jumped, before, "24. 12# [--].. <>(--) 16.");
    let jumped = [old, stream(42, 16, 16, 2)];
    check(large(V6_12), 37, jumped, before, "24. 12# [--].. <>(--)(6-)() 6.");
    // 13 cached pages after the end of the folio hide the gap from the search; 12 do not: it is
    // found, 2 pages too far, as the last page that counts.
    let new = ReadaheadState::NEW;
    let engine = &mut check(ext4(V6_18), 37, [new, new], "36. {--} 12# 12.", "36. [--] 12# 12.");
    assert_eq!(engine.course(), "nothing-absent");
    let found = [new, stream(53, 15, 15, 2)];
    check(ext4(V6_18), 37, found, "36. {--} 11# 13.", "36. [--] 11# .. m()(--)(--)");
}

#[test]
fn read_requests_remaining_pages() {
    // 4 pages to the gap and 1 requested: twice 5 pages, trimmed to 8 since 6.18.
    let cases = [
        (V6_12, 1, "36. 4# m9~ 14.", (40, 10)),
        (V6_18, 1, "36. 4# <-->(--) 16.", (40, 8)),
        (V6_12, 4, "36. 4# m15~ 8.", (40, 16)),
        // 20 pages requested, more than the readahead size, from a device with an optimum of 24: 24
        // are read.
        (V6_12, 24, "36. 4# m23~", (40, 24)),
    ];
    for (kernel, req, after, (start, size)) in cases {
        let wide = Limits { io_pages: PageCount(24), ..ext4(kernel) };
        let mut engine = Engine::new(wide, Io::Waited, "36. M3# 24.");
        let window = engine.request_at_mark(Cause::AsyncRead, 36, req).expect("a gap");
        assert_eq!((window.cause, window.index), (Cause::AsyncRead, PageIndex(36)));
        assert_eq!((window.start, window.size), (PageIndex(start), PageCount(size)));
        engine.read_window(window);
        map::assert_cache(&format!("{} {req}", kernel.name()), &engine.cache, after);
    }
}

#[test]
fn a_window_around_cached_pages_and_the_end_of_the_file() {
    // A cached page inside the first folio: base pages from there on.
    let around_page = [(ext4(V6_18), (16, 2), "24. 16# m~ # 13~ 8.")];
    check_around(24, "24. 12# M3# .. # 21.", &around_page);
    let cut = [(ext4(V6_18), (16, 2), "24. 16# <--> ~"), (ext4(V6_12), (16, 0), "24. 16# 5~")];
    check_around(24, "24. 12# M3# 5.", &cut);
    // Beyond the end of the file the stream advances, and nothing is read.
    check_around(24, "24. 12# M3#", &[(ext4(V6_12), (16, 0), "24. 16#")]);
    let states = [stream(24, 16, 4, 0), stream(40, 16, 16, 2)];
    let engine = &mut check(ext4(V6_18), 36, states, "24. 12# M3#", "24. 16#");
    assert_eq!(engine.course(), "async:40+16-16@2");
}

#[test]
fn each_hit_takes_one_from_the_counter() {
    let cases = [
        // Since 6.18 not while the folio is being read.
        (V6_12, "#", 5, 4),
        (V6_12, "~", 5, 4),
        (V6_18, "#", 5, 4),
        (V6_18, "~", 5, 5),
        (V6_12, "M", 5, 4),
        (V6_12, "m", 5, 4),
        (V6_18, "M", 5, 4),
        (V6_18, "m", 5, 5),
        (V6_12, "#", 0, 0),
        (V6_18, "#", 0, 0),
        (V6_18, "#", 1000, 999),
    ];
    for (kernel, before, counted, left) in cases {
        for executable_too in [false, true] {
            let mut engine = Engine::new(ext4(kernel), Io::Waited, &format!("32. {before} 31."));
            if executable_too {
                engine.vma = executable(engine.vma);
            }
            engine.ra = counter(counted);
            let hit = hit(&mut engine, 32);
            let case = format!("{} {before} at {counted}", kernel.name());
            assert_eq!(engine.ra.mmap_miss, left, "{case}");
            // A marked folio requests more, even while it is being read.
            assert_eq!(hit.is_some(), "Mm".contains(before), "{case}");
        }
    }
}

#[test]
fn random_advice_and_no_readahead_leave_mark_and_counter() {
    for kernel in KERNELS {
        let random = advised(Advice::RANDOM, whole(&ext4(kernel)));
        let off = Limits { ra_pages: PageCount(0), ..ext4(kernel) };
        let cases =
            [(ext4(kernel), random), (off, whole(&off)), (ext4(kernel), executable(random))];
        for (limits, vma) in cases {
            let mut engine = Engine::new(limits, Io::Waited, "24. 12# M3# 24.");
            engine.vma = vma;
            engine.ra = ReadaheadState { mmap_miss: 5, ..stream(24, 16, 4, 0) };
            let before = engine.ra;
            assert_eq!(hit(&mut engine, 36), None);
            map::assert_cache("unmoved", &engine.cache, "24. 12# M3# 24.");
            assert_eq!(engine.ra, before);
            assert_eq!(engine.course(), "");
        }
        // Other advice does not matter.
        for advice in [Advice::SEQUENTIAL, Advice::HUGEPAGE] {
            let mut engine = Engine::new(ext4(kernel), Io::Waited, "24. 12# M3# 24.");
            engine.vma = advised(advice, engine.vma);
            engine.ra = ReadaheadState { mmap_miss: 5, ..stream(24, 16, 4, 0) };
            assert!(hit(&mut engine, 36).is_some());
            assert_eq!(engine.ra.mmap_miss, 4);
        }
    }
}
