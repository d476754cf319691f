//! How far readahead goes with vma-bound: faults are bounded by the VMA, `read(2)` by the file.

use filemap_core::address::mapping::{FileMapping, Split, SplitProt};
use filemap_core::address::vma::{Advice, Vma};
use filemap_core::cache::FileCache;
use filemap_core::fault::AccessKind;
use filemap_core::readahead::Limits;
use filemap_core::readahead::bound::{first, last};
use filemap_core::rules::{Family, Kernel};
use filemap_core::series::Switch;
use filemap_core::units::{PageCount, PageIndex};

use crate::support::engine::{Engine, Io};
use crate::support::machine::{
    KERNELS, advised, executable, limits, on, part, small_tables, stream, with,
};
use crate::support::map;
use Kernel::{V6_12, V6_18};

fn file(kernel: Kernel) -> Limits {
    limits(kernel, PageCount(64))
}

fn bounded(kernel: Kernel) -> Limits {
    with(&[Switch::VmaBound], file(kernel))
}

#[test]
fn fault_is_bounded_by_vma() {
    let unify = with(&[Switch::ExecUnify], file(V6_18));
    let cases = [
        (file(V6_18), part(20, 30), (0, 63)),
        (bounded(V6_18), part(20, 30), (20, 29)),
        (bounded(V6_18), part(0, 64), (0, 63)),
        (bounded(V6_18), part(20, 21), (20, 20)),
        // A VMA that is longer than the file.
        (bounded(V6_18), part(20, 100), (20, 63)),
        (bounded(V6_18), executable(part(20, 30)), (20, 29)),
        (bounded(V6_12), part(20, 30), (20, 29)),
        // exec-unify bounds executable mappings, if they have a rule of their own.
        (unify, executable(part(20, 30)), (0, 29)),
        (unify, part(20, 30), (0, 63)),
        (with(&[Switch::ExecUnify], file(V6_12)), executable(part(20, 30)), (0, 63)),
    ];
    for (limits, vma, bounds) in cases {
        let found = (first(&vma, &limits).0, last(&vma, &limits).0);
        assert_eq!(found, bounds, "{vma:?} {:?}", limits.rules.series);
    }
}

/// A fault in `vma` of a file in the state `before`, and in the state `after` once it is served.
#[track_caller]
fn check(limits: Limits, vma: Vma, index: u64, before: &str, after: &str) -> Engine {
    let mut engine = Engine::new(limits, Io::Immediate, before);
    engine.vma = vma;
    engine.fault(index, AccessKind::Read);
    let series = limits.rules.series;
    let case = format!("{} {series} fault on {index} of {before}", limits.rules.kernel.name());
    map::assert_cache(&case, &engine.cache, after);
    engine
}

#[test]
fn read_around_stays_inside_the_vma() {
    let both = [
        (part(0, 64), 32, "24. 12# M3# 24."),
        // Clipped at its start, which moves the end.
        (part(30, 64), 32, "30. 12# M3# 18."),
        (part(32, 64), 32, "32. 12# M3# 16."),
        // Clipped at its end.
        (part(32, 33), 32, "32. # 31."),
        (part(30, 33), 32, "30. 3# 31."),
    ];
    for (vma, index, after) in both {
        for kernel in KERNELS {
            check(bounded(kernel), vma, index, "64.", after);
        }
    }
    // The mark: from the clipped end in base pages, from the requested window in large folios.
    check(bounded(V6_12), part(0, 34), 32, "64.", "24. 6# M3# 30.");
    check(bounded(V6_18), part(0, 34), 32, "64.", "24. 10# 30.");
    check(bounded(V6_18), part(0, 37), 32, "64.", "24. 12# M 27.");
    // Without the switch the VMA does not matter.
    check(file(V6_12), part(0, 34), 32, "64.", "24. 12# M3# 24.");
    check(file(V6_18), part(30, 33), 32, "64.", "24. 12# M3# 24.");
}

#[test]
fn sequential_faults_stay_inside_the_vma() {
    for kernel in KERNELS {
        let sequential = |from, end| advised(Advice::SEQUENTIAL, part(from, end));
        check(bounded(kernel), sequential(20, 40), 32, "64.", "32. 8# 24.");
        check(bounded(kernel), sequential(20, 33), 32, "64.", "32. # 31.");
        check(bounded(kernel), sequential(20, 64), 32, "64.", "32. 16# 16.");
        check(file(kernel), sequential(20, 40), 32, "64.", "32. 16# 16.");
    }
    check(bounded(V6_12), advised(Advice::SEQUENTIAL, part(0, 12)), 0, "64.", "4# M7# 52.");
    check(bounded(V6_18), advised(Advice::SEQUENTIAL, part(0, 12)), 0, "64.", "8# M3# 52.");
}

#[test]
fn huge_page_windows_end_with_the_vma() {
    let huge = |from, end| advised(Advice::HUGEPAGE, part(from, end));
    let limits = small_tables(bounded(V6_18));
    check(limits, huge(0, 64), 37, "64.", "32. [14-]{14-}");
    check(limits, huge(0, 48), 37, "64.", "32. [14-] 16.");
    check(limits, huge(0, 44), 37, "64.", "32. [6-][--] 20.");
    // The start is aligned down, also to before the VMA.
    check(limits, huge(36, 50), 37, "64.", "32. [14-]{} 14.");
    check(small_tables(file(V6_18)), huge(36, 50), 37, "64.", "32. [14-]{14-}");
}

#[test]
fn executable_windows_end_with_the_vma() {
    let arm = |switches: &[Switch]| on(Family::Arm64, 4096, with(switches, file(V6_18)));
    let code = |from, end| executable(part(from, end));
    // The same folios either way; exec-unify leaves the requested size of the window.
    for (from, end, after) in [
        (0, 64, "32. [14-] 16."),
        (0, 42, "32. [6-][] 22."),
        (35, 60, "35. # [--][6-][6-][--] 4."),
        (37, 38, "37. # 26."),
    ] {
        for switches in [&[][..], &[Switch::VmaBound], &[Switch::ExecUnify]] {
            check(arm(switches), code(from, end), 37, "64.", after);
        }
    }
    let engine = check(arm(&[]), code(0, 42), 37, "64.", "32. [6-][] 22.");
    assert_eq!((engine.ra.size, engine.ra.start), (PageCount(10), PageIndex(32)));
    let engine = check(arm(&[Switch::ExecUnify]), code(0, 42), 37, "64.", "32. [6-][] 22.");
    assert_eq!((engine.ra.size, engine.ra.start), (PageCount(16), PageIndex(32)));
}

#[test]
fn a_mark_that_a_fault_hits_is_followed_inside_the_vma() {
    for (vma, after) in [
        (part(20, 64), "20. 16# {--}[--][--][--] 12."),
        (part(20, 46), "20. 16# {--}[--][] 18."),
        (part(20, 37), "20. 16# M 27."),
        (part(20, 36), "20. 16# 28."),
    ] {
        let mut engine = Engine::new(bounded(V6_18), Io::Immediate, "20. 12# M3# 28.");
        engine.vma = vma;
        engine.ra = stream(20, 16, 4, 0);
        engine.fault(32, AccessKind::Read);
        map::assert_cache(&format!("{vma:?}"), &engine.cache, after);
    }
}

#[test]
fn reads_are_not_bounded() {
    // A stream of its own.
    let mut engine = Engine::new(bounded(V6_18), Io::Immediate, "64.");
    engine.vma = part(0, 4);
    engine.read(0, 4);
    map::assert_cache("a stream", &engine.cache, "4# M3# 56.");
    // A mark that a fault set.
    let mut engine = Engine::new(bounded(V6_18), Io::Immediate, "64.");
    engine.vma = part(20, 40);
    engine.fault(32, AccessKind::Read);
    map::assert_cache("the fault", &engine.cache, "24. 12# M3# 24.");
    engine.read(36, 1);
    map::assert_cache("the read", &engine.cache, "24. 16# {--}[--][--][--] 8.");
    // A mark that a read set, hit by a fault: bounded.
    engine.vma = part(20, 44);
    engine.fault(40, AccessKind::Read);
    map::assert_cache("the VMA ends there", &engine.cache, "24. 16# [--][--][--][--] 8.");
    let mut engine = Engine::new(bounded(V6_18), Io::Immediate, "24. 12# M3# 24.");
    engine.ra = stream(24, 16, 4, 0);
    engine.read(36, 1);
    engine.vma = part(20, 60);
    engine.fault(40, AccessKind::Read);
    map::assert_cache("the rest of the VMA", &engine.cache, "24. 16# [--][--][--][--] {--} 4.");
}

#[test]
fn each_vma_is_its_own_bound() {
    // 64 pages in order, split into VMAs of 8: each piece reads itself.
    let split = Some(Split { pages: PageCount(8), prot: SplitProt::Write });
    let mapping = FileMapping::new(part(0, 64), split);
    let majors = |limits: Limits| {
        let mut engine = Engine::new(limits, Io::Immediate, "64.");
        let touch = |page| {
            engine.vma = mapping.vma(PageIndex(page));
            engine.touch(page).is_some_and(|outcome| outcome.major)
        };
        (0..64).map(touch).filter(|&major| major).count()
    };
    for kernel in KERNELS {
        assert_eq!(majors(bounded(kernel)), 8);
        assert_eq!(majors(file(kernel)), 1);
    }
}

#[test]
fn no_fault_caches_a_page_behind_its_vma() {
    for kernel in KERNELS {
        for advice in Advice::ALL {
            for index in 20..30 {
                let vma = advised(advice, part(20, 30));
                let mut engine = Engine::new(bounded(kernel), Io::Immediate, "64.");
                engine.vma = vma;
                engine.fault(index, AccessKind::Read);
                let behind = engine.cache.next_present(PageIndex(30), PageIndex(64));
                assert_eq!(behind, PageIndex(64), "{} {}", kernel.name(), advice.name());
            }
        }
    }
}
