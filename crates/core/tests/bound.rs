//! How far readahead begun by a fault goes, with the bound of its VMA and without.
//!
//! Readahead of 16 pages: read-around begins 8 pages before the fault and is marked 4 before its
//! end.

mod support;

use filemap_core::decision::Decision;
use filemap_core::readahead::Limits;
use filemap_core::rules::{Family, Kernel};
use filemap_core::series::Switch;
use filemap_core::sync;
use filemap_core::units::{PageCount, PageIndex};
use filemap_core::vma::{Advice, Vma};

use Kernel::{V6_12, V6_18};
use support::engine::{Engine, Io};
use support::machine::{KERNELS, advised, executable, limits, on, part, small_tables, with};
use support::map;

const BOUND: &[Switch] = &[Switch::VmaBound];

fn ext4(kernel: Kernel) -> Limits {
    limits(kernel, PageCount(64))
}

/// A touch of `index` through `vma` in a file that looks like `before`, and like `after` when all
/// its data is there.
#[track_caller]
fn touch(limits: Limits, vma: Vma, index: u64, before: &str, after: &str) -> Engine {
    let mut engine = Engine::new(limits, Io::Immediate, before);
    engine.vma = vma;
    engine.touch(index);
    let case = format!("{} touch of {index} of {before}", limits.rules.kernel.name());
    map::assert_cache(&case, &engine.cache, after);
    engine
}

#[test]
fn read_around_stays_inside_the_vma() {
    let cases = [
        // (VMA, page, without, with)
        (part(20, 36), 28, "20. 12# M### 28.", "20. 12# M### 28."),
        (part(24, 64), 28, "20. 12# M### 28.", "24. 12# M### 24."),
        (part(28, 64), 28, "20. 12# M### 28.", "28. 12# M### 20."),
    ];
    for kernel in KERNELS {
        for (vma, index, without, bound) in cases {
            touch(ext4(kernel), vma, index, "64.", without);
            touch(with(BOUND, ext4(kernel)), vma, index, "64.", bound);
        }
    }
}

#[test]
fn a_window_cut_at_the_vmas_end_is_marked_as_one_cut_at_the_files_end() {
    let cases = [
        // Large folios: the mark is counted from the window as asked for. Base pages: from the
        // clipped end.
        (V6_18, part(8, 32), 28, "20. 12# 32."),
        (V6_12, part(8, 32), 28, "20. 8# M3# 32."),
        (V6_18, part(24, 32), 28, "24. 8# 32."),
        (V6_12, part(24, 32), 28, "24. 4# M3# 32."),
        (V6_18, part(28, 29), 28, "28. # 35."),
        (V6_12, part(28, 29), 28, "28. # 35."),
        (V6_18, part(0, 34), 28, "20. 12# M# 30."),
    ];
    for (kernel, vma, index, after) in cases {
        touch(with(BOUND, ext4(kernel)), vma, index, "64.", after);
    }
}

#[test]
fn sequential_faults_stop_at_the_vmas_last_page() {
    for kernel in KERNELS {
        let vma = advised(Advice::Sequential, part(32, 40));
        touch(ext4(kernel), vma, 32, "64.", "32. 16# 16.");
        touch(with(BOUND, ext4(kernel)), vma, 32, "64.", "32. 8# 24.");
    }
}

#[test]
fn huge_page_windows_are_bound_at_their_end_only() {
    // The series leaves the start of this window where the folio begins.
    let huge = small_tables(ext4(V6_18));
    let vma = advised(Advice::HugePage, part(20, 40));
    touch(huge, vma, 24, "64.", "16. [14-] {14-} 16.");
    touch(with(BOUND, huge), vma, 24, "64.", "16. [14-] {6-} 24.");
}

#[test]
fn the_window_behind_a_mark_stays_inside_the_vma() {
    for kernel in KERNELS {
        for (switches, last) in [(&[][..], 47), (BOUND, 39)] {
            let mut engine = Engine::new(with(switches, ext4(kernel)), Io::Immediate, "64.");
            engine.vma = part(16, 40);
            engine.touch(24);
            engine.course();
            engine.touch(28);
            assert!(engine.course().contains("async:32+16-16"), "{}", kernel.name());
            assert_eq!(cached(&engine), (16, last), "{} {switches:?}", kernel.name());
        }
    }
}

#[test]
fn a_mark_set_by_a_fault_and_hit_by_a_read_is_not_bound() {
    for kernel in KERNELS {
        let mut engine =
            touch(with(BOUND, ext4(kernel)), part(16, 40), 24, "64.", "16. 12# M### 32.");
        engine.course();
        engine.read(28, 1);
        assert!(engine.course().starts_with("async-read:32+16-16"), "{}", kernel.name());
        assert_eq!(cached(&engine), (16, 47), "{}", kernel.name());
    }
}

#[test]
fn a_mark_set_by_a_read_and_hit_by_a_fault_is_bound() {
    for (switches, last) in [(&[][..], 23), (BOUND, 9)] {
        for kernel in KERNELS {
            let mut engine = Engine::new(with(switches, ext4(kernel)), Io::Immediate, "64.");
            engine.vma = part(2, 10);
            engine.read(0, 4);
            assert_eq!(cached(&engine), (0, 7), "{}", kernel.name());
            engine.course();
            engine.touch(4);
            assert!(engine.course().contains("async:8+16-16"), "{}", kernel.name());
            assert_eq!(cached(&engine), (0, last), "{} {switches:?}", kernel.name());
        }
    }
}

#[test]
fn reads_are_never_bound() {
    for kernel in KERNELS {
        let mut engine = Engine::new(with(BOUND, ext4(kernel)), Io::Immediate, "64.");
        engine.vma = part(16, 20);
        engine.touch(17);
        assert_eq!(cached(&engine), (16, 19));
        engine.read(18, 6);
        assert!(cached(&engine).1 >= 23, "{}", kernel.name());
    }
}

/// First and last cached page.
fn cached(engine: &Engine) -> (usize, usize) {
    let map = map::draw(&engine.cache, PageCount(64));
    let is_cached = |letter| letter != '.';
    (map.find(is_cached).unwrap(), map.rfind(is_cached).unwrap())
}

/// Every small executable VMA, fault, readahead size, page size and hole: both ways of bounding
/// the window lay out the same folios and no mark. What they leave in the readahead state differs
/// where the VMA cuts the window.
#[test]
fn the_unified_executable_window_is_laid_out_alike() {
    let unify = &[Switch::VmaBound, Switch::ExecUnify];
    let (mut cut, mut whole) = (0, 0);
    for (family, page_size) in [
        (Family::X86_64, 4096),
        (Family::Arm64, 4096),
        (Family::Arm64, 16384),
        (Family::Arm64, 65536),
    ] {
        for (ra_pages, from, length, hole) in cases() {
            let limits = on(family, page_size, ext4(V6_18));
            let limits = Limits { ra_pages: PageCount(ra_pages), ..limits };
            let vma = executable(part(from, (from + length).min(48)));
            for index in vma.pgoff.0..vma.end().0 {
                let run = |switches| {
                    let before = format!("{hole}. # {}.", 47 - hole);
                    let mut engine = Engine::new(with(switches, limits), Io::Waited, &before);
                    let Engine { limits, ra, cache, log, .. } = &mut engine;
                    let window = sync::on_miss(PageIndex(index), &vma, limits, ra, cache, log);
                    engine.read_window(window.expect("the counter is low"));
                    engine
                };
                let (branch, unified) = (run(BOUND), run(unify));
                let case = format!("{page_size} ra {ra_pages} {vma:?} fault {index} hole {hole}");
                assert_eq!(added(&branch), added(&unified), "{case}");
                assert!(added(&branch).iter().all(|added| added.1.is_none()), "{case}");
                let start = branch.ra.start;
                assert_eq!(start, unified.ra.start, "{case}");
                let order = limits.arch.exec_order;
                if (start + PageCount(ra_pages)).align_up(order) > vma.end() {
                    cut += 1;
                    assert_eq!(branch.ra.size, vma.end() - start, "{case}");
                    assert!(unified.ra.size > branch.ra.size, "{case}");
                } else {
                    whole += 1;
                    assert_eq!(branch.ra, unified.ra, "{case}");
                }
            }
        }
    }
    assert!(cut > 1000 && whole > 1000, "{cut} windows cut, {whole} whole");
}

/// Readahead sizes, first pages and lengths of VMAs, cached pages.
fn cases() -> impl Iterator<Item = (u64, u64, u64, u64)> {
    [1, 4, 13, 16].into_iter().flat_map(|ra_pages| {
        [0, 3, 16, 29].into_iter().flat_map(move |from| {
            [1, 5, 16, 20, 48].into_iter().flat_map(move |length| {
                [0, 18, 33].into_iter().map(move |hole| (ra_pages, from, length, hole))
            })
        })
    })
}

/// The folios that a log adds: each run with its mark.
fn added(engine: &Engine) -> Vec<(String, Option<PageIndex>)> {
    let added = |decision: &Decision| match decision {
        Decision::Added { start, order, folios, marked } => {
            Some((format!("{start} {}x{folios}", order.0), *marked))
        }
        _ => None,
    };
    engine.log.iter().filter_map(added).collect()
}

/// Where the unified rule shows: the page behind the VMA carries a mark, and the size of the last
/// window decides whether that is the mark of its stream.
#[test]
fn the_unified_executable_window_shows_at_a_later_mark() {
    let after = |switches: &[Switch]| {
        let mut engine = Engine::new(with(switches, ext4(V6_18)), Io::Immediate, "20. M 43.");
        engine.vma = executable(part(0, 20));
        engine.touch(16);
        engine.course();
        engine.read(20, 1);
        engine.course()
    };
    assert_eq!(after(BOUND), "async-read:20+8-8@2 base:20+8-8");
    assert_eq!(after(&[Switch::VmaBound, Switch::ExecUnify]), "async-read:21+3-3@2");
}
