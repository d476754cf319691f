//! Fault-around: its window, what it maps, and the hits it credits.

use filemap_core::address::mapping::FileMapping;
use filemap_core::address::vma::Vma;
use filemap_core::fault::around::{AroundWindow, window};
use filemap_core::lru::lists::{LruLists, Scan};
use filemap_core::readahead::Limits;
use filemap_core::rules::{Family, Kernel};
use filemap_core::series::Switch;
use filemap_core::units::{PageCount, PageIndex, Vpn};

use crate::support::around::{Case, around, case};
use crate::support::engine::{Engine, Io};
use crate::support::machine::{KERNELS, executable, limits, on, part, small_tables, with};
use crate::support::map;
use crate::support::one_file::mapped;
use Kernel::V6_18;

/// A VMA that starts at virtual page `start` and maps the pages `from..end`.
fn at(start: u64, from: u64, end: u64) -> Vma {
    Vma { start: Vpn(start), ..part(from, end) }
}

#[test]
fn the_window_lies_in_virtual_addresses() {
    let file = 2000;
    let cases = [
        // Virtual page = page: aligned to 16.
        (at(0, 0, file), 37, 16, file, (32, 47)),
        (at(0, 0, file), 32, 16, file, (32, 47)),
        (at(0, 0, file), 47, 16, file, (32, 47)),
        (at(0, 0, file), 0, 16, file, (0, 15)),
        (at(0, 0, file), 37, 4, file, (36, 39)),
        (at(0, 0, file), 37, 2, file, (36, 37)),
        // Shifted by 3: virtual page 40 is page 37.
        (at(3, 0, file), 37, 16, file, (29, 44)),
        // The start of the VMA clips the start of the window, and moves its end.
        (at(3, 0, file), 2, 16, file, (0, 15)),
        (at(3, 0, file), 12, 16, file, (0, 15)),
        (at(3, 0, file), 13, 16, file, (13, 28)),
        (at(35, 35, file), 37, 16, file, (35, 50)),
        (at(47, 47, file), 47, 16, file, (47, 62)),
        // Its end clips the end.
        (at(0, 0, 40), 37, 16, file, (32, 39)),
        (at(0, 0, 38), 37, 16, file, (32, 37)),
        (at(35, 35, 38), 37, 16, file, (35, 37)),
        (at(37, 37, 38), 37, 16, file, (37, 37)),
        // A mapping of the file's middle at an aligned address.
        (at(0, 100, 200), 105, 16, file, (100, 115)),
        (at(0, 100, 200), 116, 16, file, (116, 131)),
        (at(0, 100, 110), 105, 16, file, (100, 109)),
        // The end of the page-table page: virtual page 512 is page 7.
        (at(505, 0, file), 2, 16, file, (0, 6)),
        (at(505, 0, file), 6, 16, file, (0, 6)),
        (at(505, 0, file), 7, 16, file, (7, 22)),
        (at(511, 0, file), 0, 16, file, (0, 0)),
        // The end of the file.
        (at(0, 0, file), 37, 16, 40, (32, 39)),
        (at(0, 0, file), 37, 16, 38, (32, 37)),
        (at(3, 0, file), 37, 16, 40, (29, 39)),
        // The whole page table at once.
        (at(0, 0, file), 700, 512, file, (512, 1023)),
    ];
    for (vma, index, fault_around, file_pages, (from, last)) in cases {
        let machine = limits(V6_18, PageCount(file_pages));
        let limits = Limits { fault_around: PageCount(fault_around), ..machine };
        let expected = AroundWindow { from: PageIndex(from), last: PageIndex(last) };
        let found = window(PageIndex(index), &vma, &limits);
        assert_eq!(found, expected, "{index} by {fault_around} in {vma:?} of {file_pages}");
    }
}

fn file(kernel: Kernel) -> Limits {
    limits(kernel, PageCount(64))
}

#[test]
fn base_pages_in_the_window_are_mapped_and_credited() {
    for kernel in KERNELS {
        let cases = [
            case(file(kernel), 37, "64#", "32. 16y 16.", 16),
            case(file(kernel), 0, "64#", "16y 48.", 16),
            case(file(kernel), 63, "64#", "48. 16y", 16),
            case(file(kernel), 37, "40#", "32. 8y", 8),
            case(file(kernel), 37, "37. # 26.", "37. y 26.", 1),
            case(file(kernel), 32, "32. 16# 16.", "32. 16y 16.", 16),
            case(file(kernel), 37, "32. # .. ## # 26.", "32. y .. 3y 26.", 4),
            // The page itself is absent, being read, or marked: its neighbours are mapped.
            case(file(kernel), 37, "37# . 26#", "32. 5y . 10y 16.", 15),
            case(file(kernel), 37, "37# ~ 26#", "32. 5y . 10y 16.", 15),
            case(file(kernel), 37, "37# M 26#", "32. 5y . 10y 16.", 15),
            case(file(kernel), 37, "37# m 26#", "32. 5y . 10y 16.", 15),
            case(file(kernel), 37, "34# M 5# ~~ 22#", "32. yy . 5y .. 6y 16.", 13),
            // Nothing in the window: nothing happens, whatever is next to it.
            case(file(kernel), 37, "32# 16. 16#", "64.", 0),
            case(file(kernel), 37, "32# 16~ 16#", "64.", 0),
            case(file(kernel), 37, "32# 16M 16#", "64.", 0),
            case(file(kernel), 37, "64.", "64.", 0),
        ];
        cases.into_iter().for_each(Case::run);
    }
}

#[test]
fn a_window_across_64_pages_is_mapped_throughout() {
    let shifted = at(3, 0, 200);
    for kernel in KERNELS {
        case(file(kernel), 62, "200#", "61. 16y 123.", 16).of(shifted).check();
        case(file(kernel), 64, "63# .. 135#", "61. yy .. 12y 123.", 14).of(shifted).check();
        case(file(kernel), 130, "200#", "125. 16y 59.", 16).of(shifted).check();
    }
    // A large folio on either side of the border.
    let map = "48. [6-][6-] [6-][6-] 120.";
    case(file(V6_18), 63, map, "56. 24y 120.", 24).of(shifted).check();
}

#[test]
fn mapped_pages_are_credited_again() {
    for kernel in KERNELS {
        let cases = [
            case(file(kernel), 37, "64#", "30. 18y 16.", 16).mapped("30. 7y"),
            case(file(kernel), 37, "36# 4. 24#", "32. 4y 4. 8y 16.", 12).mapped("32. 4y"),
            case(file(kernel), 37, "37# . 26#", "32. 5y . 10y 16.", 15).mapped("32. 5y . 10y"),
            // A private copy stays.
            case(file(kernel), 37, "64#", "32. y cc 13y 16.", 16).mapped("33. cc"),
        ];
        cases.into_iter().for_each(Case::run);
    }
}

#[test]
fn the_workingset_flag_takes_the_credit() {
    for kernel in KERNELS {
        let cases = [
            case(file(kernel), 37, "32. 4w 12# 16.", "32. 16y 16.", 12),
            case(file(kernel), 37, "37# w 26#", "32. 16y 16.", 15),
            case(file(kernel), 37, "32. 16w 16.", "32. 16y 16.", 0),
        ];
        cases.into_iter().for_each(Case::run);
    }
    case(file(V6_18), 37, "32. 4# [ww] 8# 16.", "32. 16y 16.", 12).check();
    case(file(V6_18), 33, "32. [ww][--] 8# 16.", "32. 16y 16.", 12).check();
}

#[test]
fn a_large_folio_is_mapped_whole_since_6_18() {
    let cases = [
        // Beyond the window on either side; every visited page is credited.
        case(file(V6_18), 20, "[30-] 32#", "32y 32.", 32),
        case(file(V6_18), 40, "32# [30-] 8#", "32. 32y 8.", 32),
        case(file(V6_18), 20, "8# [6-][6-] 40#", "16. 16y 32.", 16),
        case(file(V6_18), 20, "16# [--]. 43#", "16. 4y . 11y 32.", 15),
        // Reached through a page of the window that is not the fault's.
        case(file(V6_18), 37, "[30-] 5# . 26#", "32. 5y . 10y 16.", 15),
        case(file(V6_18), 20, "[14-] 4# . 43#", "16. 4y . 11y 32.", 15),
        case(file(V6_18), 12, "[14-] 48#", "16y 48.", 16),
        // Marked and locked ones are not.
        case(file(V6_18), 20, "{30-} 32#", "64.", 0),
        case(file(V6_18), 20, "(30-) 32#", "64.", 0),
        case(file(V6_18), 20, "16# {--}{--} 8# 32#", "24. 8y 32.", 8),
        // Pages of it that are mapped already.
        case(file(V6_18), 20, "[30-] 32#", "32y 32.", 32).mapped("10. 4y"),
        case(file(V6_18), 20, "[30-] 32#", "10y c 21y 32.", 32).mapped("10. c"),
    ];
    cases.into_iter().for_each(Case::run);
}

#[test]
fn the_counter_stops_at_0() {
    let mut engine = Engine::new(file(V6_18), Io::Waited, "64#");
    engine.ra.mmap_miss = 5;
    assert!(around(&mut engine, 37, false));
    assert_eq!(engine.ra.mmap_miss, 0);
    assert_eq!(engine.course(), "map:32..47=16-16");
}

#[test]
fn a_tried_retry_is_credited_too() {
    for kernel in KERNELS {
        case(file(kernel), 37, "64#", "32. 16y 16.", 16).tried().check();
    }
}

#[test]
fn miss_fault_address_credits_the_faulting_page_only() {
    for kernel in KERNELS {
        let p1 = with(&[Switch::MissFaultAddress], file(kernel));
        let cases = [
            case(p1, 37, "64#", "32. 16y 16.", 1),
            case(p1, 37, "64#", "32. 16y 16.", 1).tried(),
            case(p1, 37, "37. # 26.", "37. y 26.", 1),
            // Not mapped by this call.
            case(p1, 37, "37# . 26#", "32. 5y . 10y 16.", 0),
            case(p1, 37, "37# M 26#", "32. 5y . 10y 16.", 0),
            case(p1, 37, "64#", "32. 16y 16.", 0).mapped("37. y"),
            case(p1, 37, "64#", "32. 5y c 10y 16.", 0).mapped("37. c"),
            // Its folio has the workingset flag; the flags of other folios do not matter.
            case(p1, 37, "37# w 26#", "32. 16y 16.", 0),
            case(p1, 37, "37w # 26w", "32. 16y 16.", 1),
        ];
        cases.into_iter().for_each(Case::run);
    }
    let p1 = with(&[Switch::MissFaultAddress], file(V6_18));
    let cases = [
        case(p1, 20, "[30-] 32#", "32y 32.", 1),
        case(p1, 20, "16# [ww][ww] 40#", "16. 16y 32.", 0),
        case(p1, 20, "16# [ww][--] 40#", "16. 16y 32.", 1),
        case(p1, 24, "16# [6-] . 39#", "16. 8y . 7y 32.", 0),
        case(p1, 23, "16# [6-] . 39#", "16. 8y . 7y 32.", 1),
        case(p1, 15, "[14-] 48#", "16y 48.", 1),
        case(p1, 16, "16# [6-] 40#", "16. 16y 32.", 1),
    ];
    cases.into_iter().for_each(Case::run);
    // A PMD entry still credits nothing.
    let small = with(&[Switch::MissFaultAddress], small_tables(file(V6_18)));
    case(small, 20, "16. [14-] 32.", "16. 16y 32.", 0).check();
}

#[test]
fn miss_no_retry_credits_nothing_on_a_tried_retry() {
    for kernel in KERNELS {
        let p2 = with(&[Switch::MissNoRetry], file(kernel));
        let both = with(&[Switch::MissNoRetry, Switch::MissFaultAddress], file(kernel));
        let cases = [
            case(p2, 37, "64#", "32. 16y 16.", 16),
            case(p2, 37, "64#", "32. 16y 16.", 0).tried(),
            case(both, 37, "64#", "32. 16y 16.", 1),
            case(both, 37, "64#", "32. 16y 16.", 0).tried(),
        ];
        cases.into_iter().for_each(Case::run);
    }
}

/// The pages that reclaim keeps because their entries are young.
#[track_caller]
fn check_young(limits: Limits, index: u64, cache: &str, kept: &str) {
    let mut engine = Engine::new(limits, Io::Waited, cache);
    assert!(around(&mut engine, index, false));
    let mappings = mapped(FileMapping::new(engine.vma, None));
    engine.cache.shrink(Scan::until(engine.limits.file_pages), &mappings, &mut ());
    map::assert_cache(&format!("{index} of {cache}"), &engine.cache, kept);
}

#[test]
fn entries_are_young_on_x86_and_old_on_arm64() {
    let x86 = file(V6_18);
    check_young(x86, 37, "64#", "32. 16# 16.");
    check_young(x86, 20, "[30-] 32#", "[30-] 32.");
    check_young(x86, 20, "16# [6-][6-] 32#", "16. [6-][6-] 32.");
    // The page that faulted is young anyway.
    let arm = on(Family::Arm64, 4096, file(V6_18));
    check_young(arm, 37, "64#", "37. # 26.");
    check_young(arm, 20, "16# [6-][6-] 32#", "16. [6-] 40.");
    check_young(arm, 24, "16# [6-][6-] 32#", "24. [6-] 32.");
    check_young(arm, 20, "16# [--] [--] 40#", "20. [--] 40.");
}

#[test]
fn protection_does_not_matter() {
    for kernel in KERNELS {
        case(file(kernel), 37, "64#", "32. 16y 16.", 16).of(executable(part(0, 64))).check();
    }
}
