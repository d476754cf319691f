//! The window of a fault that misses: which rule determines it, where it is, and the effect on the
//! counter.
//!
//! Readahead of 16 pages: read-around starts 8 pages before the fault and is marked 4 before its
//! end.

use filemap_core::address::vma::Advice;
use filemap_core::decision::{Cause, Decision};
use filemap_core::readahead::{Limits, ReadaheadState};
use filemap_core::rules::Kernel;
use filemap_core::units::{PageCount, PageIndex};

use crate::support::engine::{Engine, Io};
use crate::support::machine::{
    KERNELS, advised, counter, executable, limits, part, small_tables, stream, xfs,
};
use crate::support::map;
use crate::support::miss::{check, miss};
use Kernel::{V6_12, V6_18};

fn file(kernel: Kernel) -> Limits {
    limits(kernel, PageCount(64))
}

/// Misses with the same result on either kernel: the page, and the file before and after it.
#[track_caller]
fn check_on_both(cases: &[(u64, &str, &str)]) {
    for &(index, before, after) in cases {
        check(file(V6_12), None, index, before, after);
        check(file(V6_18), None, index, before, after);
    }
}

#[test]
fn read_around_at_the_edges_of_the_file() {
    let both = [
        (32, "64.", "24. 12~ m3~ 24."),
        // The start is clipped at 0, the length is not.
        (0, "64.", "12~ m3~ 48."),
        (3, "64.", "12~ m3~ 48."),
        (8, "64.", "12~ m3~ 48."),
        (9, "64.", ". 12~ m3~ 47."),
        // The window that ends with the file.
        (56, "64.", "48. 12~ m3~"),
        // Files shorter than the part after the mark, and than the window.
        (1, "3.", "3~"),
        (0, ".", "~"),
    ];
    check_on_both(&both);
}

#[test]
fn a_clipped_read_around_is_marked_before_its_clipped_end_in_base_pages_only() {
    // Large folios: the mark is counted from the requested window, beyond the end of the file here.
    check(file(V6_18), None, 57, "64.", "49. 12~ m2~");
    check(file(V6_18), None, 60, "64.", "52. 12~");
    check(file(V6_18), None, 63, "64.", "55. 9~");
    check(file(V6_18), None, 0, "4.", "4~");
    // Base pages: from the clipped end.
    check(file(V6_12), None, 57, "64.", "49. 11~ m3~");
    check(file(V6_12), None, 60, "64.", "52. 8~ m3~");
    check(file(V6_12), None, 63, "64.", "55. 5~ m3~");
    check(file(V6_12), None, 0, "4.", "m3~");
}

#[test]
fn read_around_goes_around_cached_pages() {
    let both = [
        (32, "30. # 33.", "24. 6~ # 5~ m3~ 24."),
        (32, "24. ## 38.", "24. ## 10~ m3~ 24."),
        // A cached page does not get the mark.
        (32, "36. # 27.", "24. 12~ # 3~ 24."),
        (32, "33. 20# 11.", "24. 9~ 20# 11."),
        (32, "32# . 31#", "32# ~ 31#"),
    ];
    check_on_both(&both);
}

#[test]
fn read_around_does_not_know_the_vma() {
    for kernel in KERNELS {
        for vma in [part(32, 33), part(30, 34), part(0, 64), part(32, 64), part(0, 33)] {
            check(file(kernel), Some(vma), 32, "64.", "24. 12~ m3~ 24.");
        }
    }
}

#[test]
fn read_around_with_other_readahead_sizes() {
    let cases = [
        (1, 32, "32. ~ 31."),
        (2, 32, "31. ~~ 31."),
        (3, 32, "31. ~~~ 30."),
        (4, 32, "30. 3~ m 30."),
        (15, 32, "25. 12~ m~~ 24."),
        (64, 32, "48~ m15~"),
    ];
    for (ra_pages, index, after) in cases {
        for kernel in KERNELS {
            let limits = Limits { ra_pages: PageCount(ra_pages), ..file(kernel) };
            check(limits, None, index, "64.", after);
        }
    }
}

#[test]
fn read_around_on_6_12_with_large_folios_gets_order_2() {
    let engine = check(xfs(V6_12, PageCount(64)), None, 32, "64.", "24. (--)(--)(--)<--> 24.");
    assert_eq!(engine.ra, ReadaheadState { mmap_miss: 1, ..stream(24, 16, 4, 0) });
    // Around 35 the ends are not aligned, and the mark is inside a folio.
    check(xfs(V6_12, PageCount(64)), None, 35, "64.", "27. ~ (--)(--)<--> () ~ 21.");
}

#[test]
fn the_state_of_the_file_after_read_around() {
    for kernel in KERNELS {
        let marked = if kernel == V6_12 { "52. 8~ m3~" } else { "52. 12~" };
        let engine = check(file(kernel), None, 60, "64.", marked);
        assert_eq!(engine.ra, ReadaheadState { mmap_miss: 1, ..stream(52, 16, 4, 0) });
    }
}

#[test]
fn counter_disables_read_around() {
    let window = "24. 12~ m3~ 24.";
    let cases = [
        (0, 1, window),
        (99, 100, window),
        (100, 101, "64."),
        (101, 102, "64."),
        (999, 1000, "64."),
        (1000, 1000, "64."),
    ];
    for kernel in KERNELS {
        for (before, after, drawn) in cases {
            for vma in [part(0, 64), executable(part(0, 64))] {
                let mut engine = Engine::new(file(kernel), Io::Waited, "64.");
                engine.vma = vma;
                engine.ra = counter(before);
                let read = miss(&mut engine, 32).is_some();
                let case = format!("{} counter {before}", kernel.name());
                assert_eq!(engine.ra.mmap_miss, after, "{case}");
                assert_eq!(read, drawn != "64.", "{case}");
                if !read {
                    let none = Decision::NoReadahead { index: PageIndex(32), mmap_miss: after };
                    assert_eq!(engine.log, [none], "{case}");
                }
                if !vma.executable || kernel == V6_12 {
                    map::assert_cache(&case, &engine.cache, drawn);
                }
            }
        }
    }
}

#[test]
fn random_advice_and_no_readahead_read_one_page_and_count_nothing() {
    for kernel in KERNELS {
        let random = advised(Advice::RANDOM, part(0, 64));
        let off = Limits { ra_pages: PageCount(0), ..file(kernel) };
        let none = [
            (file(kernel), random),
            (off, part(0, 64)),
            (off, executable(part(0, 64))),
            (off, advised(Advice::SEQUENTIAL, part(0, 64))),
        ];
        for (limits, vma) in none {
            let mut engine = check(limits, Some(vma), 32, "64.", "64.");
            assert_eq!(engine.ra, ReadaheadState::NEW, "{vma:?}");
            assert_eq!(engine.course(), "single", "{vma:?}");
        }
    }
}

#[test]
fn sequential_advice_reads_on_demand_and_counts_nothing() {
    // Start of the file: a new stream. Elsewhere: exactly the readahead size, without a mark.
    let cases = [
        (0, "64.", "8~ m7~ 48.", stream(0, 16, 8, 0)),
        (32, "64.", "32. 16~ 16.", stream(7, 7, 7, 0)),
        (32, "16. 16# 32.", "16. 16# 16~ 16.", stream(7, 7, 7, 0)),
        (60, "64.", "60. 4~", stream(7, 7, 7, 0)),
    ];
    for kernel in KERNELS {
        for (index, before, after, ra) in cases {
            let mut engine = Engine::new(file(kernel), Io::Waited, before);
            engine.vma = advised(Advice::SEQUENTIAL, engine.vma);
            engine.ra = ReadaheadState { mmap_miss: 500, ..stream(7, 7, 7, 0) };
            let window = miss(&mut engine, index).expect("sequential mappings read");
            let cause = if index == 0 { Cause::SequentialFault } else { Cause::SequentialSingle };
            assert_eq!(window.cause, cause);
            map::assert_cache("sequential", &engine.cache, after);
            assert_eq!(engine.ra, ReadaheadState { mmap_miss: 500, ..ra });
        }
    }
}

#[test]
fn advice_comes_before_the_executable_rule() {
    let code = |advice| Some(advised(advice, executable(part(0, 64))));
    // RANDOM does not stop code since 6.18; its misses count.
    let engine = check(file(V6_18), code(Advice::RANDOM), 32, "64.", "32. 16~ 16.");
    assert_eq!(engine.ra.mmap_miss, 1);
    let engine = check(file(V6_12), code(Advice::RANDOM), 32, "64.", "64.");
    assert_eq!(engine.ra.mmap_miss, 0);
    for kernel in KERNELS {
        check(file(kernel), code(Advice::SEQUENTIAL), 0, "64.", "8~ m7~ 48.");
    }
    let huge = small_tables(file(V6_18));
    check(huge, code(Advice::HUGEPAGE), 37, "64.", "32. (14-) <14->");
}
