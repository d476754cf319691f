//! The course of a fault: locks, lookups, windows, waiting and retries.
//!
//! Readahead of 16 pages, fault-around of 16: a miss at 32 reads 24 to 39 and marks 36; its retry
//! maps 32 to 39 except the marked page, 7 pages.

use filemap_core::address::vma::Advice;
use filemap_core::cache::FolioRun;
use filemap_core::fault::{AccessKind, Fault, FaultResult, Step, View};
use filemap_core::readahead::Limits;
use filemap_core::series::Switch;
use filemap_core::units::{Order, PageCount, PageIndex};

use crate::support::engine::{Engine, Io};
use crate::support::machine::{KERNELS, advised, limits, part, stream, with};
use crate::support::map;
use filemap_core::rules::Kernel::{V6_12, V6_18};

fn file(kernel: filemap_core::rules::Kernel) -> Limits {
    limits(kernel, PageCount(64))
}

fn without_fault_around(limits: Limits) -> Limits {
    Limits { fault_around: PageCount(1), ..limits }
}

const READ: AccessKind = AccessKind::Read;

const WRITE: AccessKind = AccessKind::WritePrivate;

/// One fault, with the counter at `counter` before it: its course, and the counter after it.
#[track_caller]
fn check(mut engine: Engine, access: AccessKind, counter: (u16, u16), course: &str) -> Engine {
    engine.ra.mmap_miss = counter.0;
    engine.fault(32, access);
    assert_eq!(engine.course(), course);
    assert_eq!(engine.ra.mmap_miss, counter.1);
    engine
}

#[test]
fn a_hit_that_fault_around_maps_is_minor() {
    for kernel in KERNELS {
        let engine = Engine::new(file(kernel), Io::Immediate, "64#");
        let mut engine = check(engine, READ, (20, 4), "vma map:32..47=16-16 minor/1");
        map::assert_mapped("a hit", &engine.cache, "32. 16y 16.");
        assert_eq!(engine.fault(10, READ), FaultResult { major: false, tries: 1 });
    }
}

#[test]
fn miss_drops_its_lock_and_retries_under_mmap_lock() {
    for kernel in KERNELS {
        let engine = Engine::new(file(kernel), Io::Immediate, "64.");
        let course = "vma miss:9 drop around:24+16-4 mmap map:32..47=7-7 major/2";
        // 6.12 has base pages on ext4, which the log shows.
        let base = course.replace(" mmap", " base:24+16-4 mmap");
        let course = if kernel == V6_12 { &base } else { course };
        // Incremented once, and decremented by its own retry.
        let engine = check(engine, READ, (9, 3), course);
        map::assert_cache("a miss", &engine.cache, "24. 12# M3# 24.");
        map::assert_mapped("a miss", &engine.cache, "32. 4y . 3y 24.");
    }
}

#[test]
fn a_miss_waits_for_its_data_without_its_lock() {
    let engine = Engine::new(file(V6_18), Io::Waited, "64.");
    let course = "vma miss:0 drop around:24+16-4 wait:32 mmap map:32..47=7-7 major/2";
    let mut engine = check(engine, READ, (0, 0), course);
    assert_eq!(engine.touch(33), None);
}

#[test]
fn without_fault_around_the_retry_looks_its_page_up() {
    // The TRIED retry credits nothing, so misses add up.
    for io in [Io::Immediate, Io::Waited] {
        let wait = if io == Io::Waited { " wait:32" } else { "" };
        let engine = Engine::new(without_fault_around(file(V6_18)), io, "64.");
        let course = format!("vma miss:0 drop around:24+16-4{wait} mmap tried-hit:1 major/2");
        let engine = check(engine, READ, (0, 1), &course);
        map::assert_mapped("one page", &engine.cache, "32. y 31.");
    }
}

#[test]
fn miss_on_the_mark_leaves_the_mark() {
    // Readahead of 2 pages marks none, of 1 page neither; of 4 pages: 30 to 33, the mark at 33.
    let small = Limits { ra_pages: PageCount(4), ..without_fault_around(file(V6_18)) };
    let mut engine = Engine::new(small, Io::Immediate, "64.");
    engine.fault(32, READ);
    map::assert_cache("unmarked", &engine.cache, "30. 3# M 30.");
    // An executable window of order 4 at 64 KiB of arm64 is not marked at all: a TRIED retry
    // that finds a mark is one whose window marked its own page.
    let mut engine = Engine::new(without_fault_around(file(V6_18)), Io::Immediate, "64.");
    engine.vma = advised(Advice::SEQUENTIAL, engine.vma);
    engine.fault(0, READ);
    engine.course();
    // Start of the file: 0 to 15, the mark at 8. The TRIED retry of 0 left the mark.
    map::assert_cache("the start", &engine.cache, "8# M7# 48.");
}

#[test]
fn a_tried_retry_leaves_the_mark_on_its_page() {
    // A file of 4 pages in base pages: the mark is 4 pages before the end, on the faulting page.
    let engine = Engine::new(file(V6_12), Io::Immediate, "4.");
    let mut engine = Engine { vma: part(0, 4), ..engine };
    engine.ra.mmap_miss = 9;
    engine.fault(0, READ);
    let course = "vma miss:9 drop around:0+16-4 base:0+4-4 mmap map:0..3=3-3 tried-hit:7 major/2";
    assert_eq!(engine.course(), course);
    map::assert_cache("still marked", &engine.cache, "M3#");
    map::assert_mapped("all mapped", &engine.cache, "4y");
}

#[test]
fn single_page_is_created_locked_and_awaited_unlocked() {
    let course = "vma miss:100 single drop wait:32 mmap map:32..47=1-1 major/2";
    let engine = Engine::new(file(V6_18), Io::Waited, "64.");
    let engine = check(engine, READ, (100, 100), course);
    map::assert_cache("one page", &engine.cache, "32. # 31.");
    map::assert_mapped("one page", &engine.cache, "32. y 31.");
    // If its data is there immediately, there is no retry, and nothing credits the miss back.
    let course = "vma miss:100 single major/1";
    let engine = Engine::new(file(V6_18), Io::Immediate, "64.");
    check(engine, READ, (100, 101), course);
    // Advised RANDOM: the counter is not consulted; only the retry changes it.
    let mut engine = Engine::new(file(V6_18), Io::Waited, "64.");
    engine.vma = advised(Advice::RANDOM, engine.vma);
    let course = "vma miss:50 single drop wait:32 mmap map:32..47=1-1 major/2";
    check(engine, READ, (50, 49), course);
}

#[test]
fn the_counter_never_grows_by_read_faults() {
    // Each miss is credited back by its own retry; P2 prevents that, P1 alone does not.
    let p1 = Switch::MissFaultAddress;
    let p2 = Switch::MissNoRetry;
    let cases: [(&[Switch], u16); 4] = [(&[], 3), (&[p1], 9), (&[p2], 10), (&[p1, p2], 10)];
    for (switches, counter) in cases {
        for kernel in KERNELS {
            let mut engine = Engine::new(with(switches, file(kernel)), Io::Waited, "64.");
            engine.ra.mmap_miss = 9;
            engine.fault(32, READ);
            assert_eq!(engine.ra.mmap_miss, counter, "{switches:?} on {}", kernel.name());
        }
    }
}

#[test]
fn private_writes_grow_the_counter_until_readahead_stops() {
    // No fault-around, and a TRIED retry credits nothing.
    for kernel in KERNELS {
        let mut engine = Engine::new(file(kernel), Io::Waited, "6400.");
        for fault in 0..103 {
            engine.course();
            let page = fault * 32 + 16;
            assert_eq!(engine.fault(page, WRITE), FaultResult { major: true, tries: 2 });
            assert_eq!(engine.ra.mmap_miss, fault as u16 + 1);
            let read = engine.course().contains("around");
            assert_eq!(read, fault < 100, "fault {fault}");
        }
    }
}

#[test]
fn a_private_write_maps_a_copy() {
    for kernel in KERNELS {
        let course = "vma hit:5 copy:32 minor/1";
        let engine = Engine::new(file(kernel), Io::Waited, "64#");
        let engine = check(engine, WRITE, (5, 4), course);
        map::assert_mapped("a copy", &engine.cache, "32. c 31.");
        map::assert_cache("a copy", &engine.cache, "64#");
        let course = "vma miss:5 drop around:24+16-4 base:24+16-4 wait:32 mmap tried-hit:6 copy:32 \
                      major/2";
        let course = if kernel == V6_18 { &course.replace("base:24+16-4 ", "") } else { course };
        let engine = Engine::new(file(kernel), Io::Waited, "64.");
        check(engine, WRITE, (5, 6), course);
    }
    // One page of a large folio, too.
    let engine = Engine::new(file(V6_18), Io::Waited, "32. [30-] 8.");
    let engine = check(engine, WRITE, (5, 4), "vma hit:5 copy:32 minor/1");
    map::assert_mapped("a copy", &engine.cache, "32. c 39.");
}

#[test]
fn a_folio_that_is_still_being_read_is_waited_for() {
    // Another task reads it: no miss. The retry is not TRIED, and not major.
    let course = "vma hit:9 drop wait:32 mmap map:32..47=1-1 minor/2";
    let engine = Engine::new(file(V6_18), Io::Waited, "32. ~ 31.");
    check(engine, READ, (9, 8), course);
    // 6.12 counts the hit on the locked folio, and again in its retry.
    let engine = Engine::new(file(V6_12), Io::Waited, "32. ~ 31.");
    check(engine, READ, (9, 7), course);
    let old = Engine::new(without_fault_around(file(V6_12)), Io::Waited, "32. ~ 31.");
    check(old, READ, (9, 7), "vma hit:9 drop wait:32 mmap hit:8 minor/2");
    let new = Engine::new(without_fault_around(file(V6_18)), Io::Waited, "32. ~ 31.");
    check(new, READ, (9, 8), "vma hit:9 drop wait:32 mmap hit:9 minor/2");
}

#[test]
fn marked_page_advances_the_stream_and_retries() {
    // The mark keeps fault-around from mapping it; the retry maps it.
    let mut engine = Engine::new(file(V6_18), Io::Immediate, "20. 12# M3# 28.");
    engine.ra = stream(20, 16, 4, 0);
    let course = "vma map:32..47=3-3 hit:6 drop async:36+16-16@2 mmap map:32..47=9-12 minor/2";
    let engine = check(engine, READ, (9, 0), course);
    map::assert_cache("moved on", &engine.cache, "20. 16# {--}[--][--][--] 12.");
    map::assert_mapped("the new mark is not", &engine.cache, "32. 4y 4. 8y 16.");
}

#[test]
fn the_retry_of_an_async_window_counts_the_hit_again() {
    for kernel in KERNELS {
        let mut engine =
            Engine::new(without_fault_around(file(kernel)), Io::Waited, "20. 12# M3# 28.");
        engine.ra = stream(20, 16, 4, 0);
        engine.ra.mmap_miss = 9;
        assert_eq!(engine.fault(32, READ), FaultResult { major: false, tries: 2 });
        let course = engine.course();
        assert!(course.starts_with("vma hit:9 drop async:36+16-16"), "{course}");
        assert!(course.ends_with("mmap hit:8 minor/2"), "{course}");
        assert_eq!(engine.ra.mmap_miss, 7);
    }
}

#[test]
fn mark_without_absent_pages_behind_it_drops_the_lock() {
    let engine = Engine::new(without_fault_around(file(V6_18)), Io::Waited, "32# M 31#");
    let course = "vma hit:9 nothing-absent drop mmap hit:8 minor/2";
    let engine = check(engine, READ, (9, 7), course);
    map::assert_cache("the mark is gone", &engine.cache, "64#");
}

#[test]
fn a_mark_on_a_folio_being_read_is_taken_before_waiting() {
    let mut engine = Engine::new(without_fault_around(file(V6_18)), Io::Waited, "20. 12# m3~ 28.");
    engine.ra = stream(20, 16, 4, 0);
    let course = "vma hit:9 drop async:36+16-16@2 wait:32 mmap hit:9 minor/2";
    check(engine, READ, (9, 8), course);
}

/// Evicts everything.
fn evict(engine: &mut Engine) {
    engine.cache = map::cache(&format!("{}.", engine.limits.file_pages));
}

#[test]
fn a_tried_retry_that_misses_reads_under_its_lock() {
    let mut engine = Engine::new(file(V6_18), Io::Waited, "64.");
    let mut evicted = false;
    let outcome = engine.fault_with(32, READ, |step, engine| {
        if !evicted && matches!(step, Step::Wait(_)) {
            evict(engine);
            evicted = true;
        }
    });
    assert_eq!(outcome, FaultResult { major: true, tries: 2 });
    let course = "vma miss:0 drop around:24+16-4 wait:32 mmap tried-miss:1 around:24+16-4 wait:32 \
                  major/2";
    assert_eq!(engine.course(), course);
    // Counted twice, and nothing credits it back; only its page is mapped.
    assert_eq!(engine.ra.mmap_miss, 2);
    map::assert_mapped("its page", &engine.cache, "32. y 31.");
}

#[test]
fn page_missing_after_readahead_is_created() {
    let mut engine = Engine::new(file(V6_18), Io::Immediate, "64.");
    engine.fault_with(32, READ, |step, engine| {
        if step == Step::Read {
            evict(engine);
        }
    });
    assert_eq!(engine.course(), "vma miss:0 drop around:24+16-4 mmap map:32..47=1-1 major/2");
    map::assert_cache("one page", &engine.cache, "32. # 31.");
}

#[test]
fn the_misses_of_a_fault_and_its_retry_are_counted() {
    let mut engine = Engine::new(file(V6_18), Io::Waited, "64.");
    let mut waits = 0;
    let outcome = engine.fault_with(32, READ, |step, engine| {
        if matches!(step, Step::Wait(_)) {
            waits += 1;
            if waits < 3 {
                evict(engine);
            }
        }
    });
    // The retry keeps its lock: a page lost while it waited is read again, as a single page.
    assert_eq!(outcome, FaultResult { major: true, tries: 2 });
    let course = "vma miss:0 drop around:24+16-4 wait:32 mmap tried-miss:1 around:24+16-4 wait:32 \
                  wait:32 major/2";
    assert_eq!(engine.course(), course);
    map::assert_cache("one page", &engine.cache, "32. # 31.");
}

#[test]
fn retry_that_drops_mmap_lock_is_tried_next() {
    // A mark, then a folio that another task reads again: three attempts, none of them a miss.
    let mut engine = Engine::new(without_fault_around(file(V6_18)), Io::Waited, "20. 12# M3# 28.");
    engine.ra = stream(20, 16, 4, 0);
    engine.ra.mmap_miss = 9;
    let outcome = engine.fault_with(32, READ, |step, engine| {
        if step == Step::Read {
            engine.cache = map::cache("32. ~ 31.");
        }
        if matches!(step, Step::Wait(_)) && engine.log.len() < 8 {
            engine.cache = map::cache("32. ~ 31.");
        }
    });
    let course = engine.course();
    assert!(course.starts_with("vma hit:9 drop async:36+16-16@2 wait:32 mmap hit:8"), "{course}");
    assert!(course.contains("hit:8 drop wait:32 mmap tried-hit:8"), "{course}");
    // The TRIED one counts as major in the accounting of the process, as in the kernel.
    assert_eq!(outcome, FaultResult { major: true, tries: 3 });
}

#[test]
fn folio_evicted_before_its_lock_is_dropped_is_read_again() {
    // The TRIED retry waits under its lock; the page that arrives is gone when it looks.
    let mut engine = Engine::new(without_fault_around(file(V6_18)), Io::Waited, "64.");
    let mut waits = 0;
    engine.fault_with(32, READ, |step, engine| {
        if matches!(step, Step::Wait(_)) {
            waits += 1;
            if waits <= 1 {
                engine.cache = map::cache("32. ~ 31.");
            } else if waits == 2 {
                evict(engine);
            }
        }
    });
    let course = "vma miss:0 drop around:24+16-4 wait:32 mmap tried-hit:1 wait:32 wait:32 major/2";
    assert_eq!(engine.course(), course);
    map::assert_mapped("served", &engine.cache, "32. y 31.");
}

#[test]
fn a_single_page_is_added_once() {
    // Another task added it between the step and its execution: the fault continues.
    let mut engine = Engine::new(file(V6_18), Io::Waited, "64.");
    engine.ra.mmap_miss = 100;
    let mut added = false;
    engine.fault_with(32, READ, |step, engine| {
        if matches!(step, Step::ReadPage(_)) && !added {
            added = true;
            let start = PageIndex(33);
            engine.cache.add(FolioRun { start, order: Order(0), folios: 1, marked: None });
        }
    });
    map::assert_cache("both", &engine.cache, "32. ## 30.");
}

#[test]
fn tries_and_misses_are_readable_between_steps() {
    let mut engine = Engine::new(file(V6_18), Io::Immediate, "64.");
    let mut fault = Fault::new(PageIndex(32), READ);
    let mut seen = Vec::new();
    loop {
        let Engine { limits, vma, ra, tables, cache, log, .. } = &mut engine;
        let step = fault.step(&mut View { limits, vma, ra, tables, cache, log });
        seen.push((fault.tries(), fault.misses()));
        match step {
            Step::Done(_) => break,
            Step::Read => {
                engine.read_window(*fault.window());
                if seen.len() < 5 {
                    evict(&mut engine);
                }
            }
            Step::ReadPage(_) => engine.cache = map::cache("32. # 31."),
            _ => {}
        }
    }
    // Lock, unlock, read, and the page read is gone: the page itself, then the retry.
    let expected = [(1, 0), (1, 1), (1, 1), (1, 1), (2, 1), (2, 1)];
    assert_eq!(seen, expected);
}
