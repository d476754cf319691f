//! Fault-around: its window, what it maps of it, and the hits it takes from the counter.

mod support;

use filemap_core::cache::PageCache;
use filemap_core::fault::View;
use filemap_core::fault_around::{Around, map_around, window};
use filemap_core::page_table::maps_whole;
use filemap_core::readahead::Limits;
use filemap_core::rules::{Family, Kernel};
use filemap_core::series::Switch;
use filemap_core::units::{PageCount, PageIndex, Vpn};
use filemap_core::vma::{Mapping, Vma};

use Kernel::{V6_12, V6_18};
use support::engine::{Engine, Io};
use support::machine::{KERNELS, executable, limits, on, part, small_tables, with};
use support::map;

/// A VMA that begins at virtual page `start` and maps the pages `from..end`.
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
        // The start of the VMA cuts the window's start, and moves its end.
        (at(3, 0, file), 2, 16, file, (0, 15)),
        (at(3, 0, file), 12, 16, file, (0, 15)),
        (at(3, 0, file), 13, 16, file, (13, 28)),
        (at(35, 35, file), 37, 16, file, (35, 50)),
        (at(47, 47, file), 47, 16, file, (47, 62)),
        // Its end cuts the end.
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
        let expected = Around { from: PageIndex(from), last: PageIndex(last) };
        let found = window(PageIndex(index), &vma, &limits);
        assert_eq!(found, expected, "{index} by {fault_around} in {vma:?} of {file_pages}");
    }
}

/// One fault-around: a file, its entries before and after, and what it does to the counter.
struct Case {
    limits: Limits,
    vma: Option<Vma>,
    index: u64,
    tried: bool,
    cache: &'static str,
    before: Option<&'static str>,
    after: &'static str,
    /// Hits taken from a counter of 1000.
    credit: u16,
}

fn case(limits: Limits, index: u64, cache: &'static str, after: &'static str, credit: u16) -> Case {
    Case { limits, vma: None, index, tried: false, cache, before: None, after, credit }
}

impl Case {
    fn of(self, vma: Vma) -> Case {
        Case { vma: Some(vma), ..self }
    }

    fn mapped(self, before: &'static str) -> Case {
        Case { before: Some(before), ..self }
    }

    fn tried(self) -> Case {
        Case { tried: true, ..self }
    }

    #[track_caller]
    fn run(self) {
        self.check();
    }

    /// Runs it; it says that it mapped the fault's page exactly where that page is new.
    #[track_caller]
    fn check(self) -> Engine {
        let mut engine = Engine::new(self.limits, Io::Waited, self.cache);
        engine.vma = self.vma.unwrap_or(engine.vma);
        engine.ra.mmap_miss = 1000;
        map::set_mapped(&mut engine.cache, self.before.unwrap_or("."));
        let is_mapped = |engine: &Engine| {
            map::draw_mapped(&engine.cache, PageCount(self.index + 1)).ends_with('y')
        };
        let was_mapped = is_mapped(&engine);
        let reached = around(&mut engine, self.index, self.tried);
        let kernel = self.limits.rules.kernel.name();
        let case = format!("{kernel} fault on {} of {}", self.index, self.cache);
        map::assert_mapped(&case, &engine.cache, self.after);
        map::assert_cache(&case, &engine.cache, self.cache);
        assert_eq!(1000 - engine.ra.mmap_miss, self.credit, "{case}");
        assert_eq!(reached, is_mapped(&engine) && !was_mapped, "{case}");
        engine
    }
}

fn around(engine: &mut Engine, index: u64, tried: bool) -> bool {
    let Engine { limits, vma, ra, tables, cache, log, .. } = engine;
    map_around(PageIndex(index), tried, &mut View { limits, vma, ra, tables, cache, log })
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
            // Nothing in the window: nothing happens, whatever lies beside it.
            case(file(kernel), 37, "32# 16. 16#", "64.", 0),
            case(file(kernel), 37, "32# 16~ 16#", "64.", 0),
            case(file(kernel), 37, "32# 16M 16#", "64.", 0),
            case(file(kernel), 37, "64.", "64.", 0),
        ];
        cases.into_iter().for_each(Case::run);
    }
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
        // Beyond the window on either side; every page that was visited is credited.
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
fn a_large_folio_beyond_64_pages_is_mapped_whole() {
    case(file(V6_18), 20, "[126-] 64.", "128y 64.", 128).check();
    case(file(V6_18), 140, "128# [126-] 64.", "128. 128y 64.", 128).check();
}

#[test]
fn on_6_12_a_large_folio_is_mapped_in_the_window_only() {
    let large = |index, cache, after, credit| {
        let file = file(V6_12);
        let limits = Limits { max_folio: Some(file.arch.max_cache_order), ..file };
        case(limits, index, cache, after, credit)
    };
    let cases = [
        large(20, "[30-] 32#", "16. 16y 32.", 16),
        large(40, "32# [30-]", "32. 16y 16.", 16),
        large(20, "[30-] 32#", "10. 4y 2. 16y 32.", 16).mapped("10. 4y"),
        large(20, "8# [6-][--]. 43#", "16. 4y . 11y 32.", 15),
        large(20, "{30-} 32#", "64.", 0),
    ];
    cases.into_iter().for_each(Case::run);
}

#[test]
fn a_large_folio_that_leaves_the_vma_or_the_table_is_mapped_in_the_window_only() {
    let cases = [
        // The VMA begins inside the folio, or ends inside it.
        case(file(V6_18), 20, "[30-] 32#", "16. 16y 32.", 16).of(part(4, 64)),
        case(file(V6_18), 20, "[30-] 32#", "16. 15y 33.", 15).of(part(0, 31)),
        case(file(V6_18), 20, "[30-] 32#", "18. 13y 33.", 13).of(part(18, 31)),
        // It ends with it, or begins with it.
        case(file(V6_18), 20, "[30-] 32#", "32y 32.", 32).of(part(0, 32)),
        case(file(V6_18), 40, "32# [30-] 8#", "32. 32y 8.", 32).of(part(32, 64)),
        // The folio at 32 crosses into the next page-table page, at page 36.
        case(file(V6_18), 33, "32# [6-] 24#", "20. 16y 28.", 16).of(at(476, 0, 64)),
        // The one before does not.
        case(file(V6_18), 33, "16# [14-] [6-] 24#", "16. 20y 28.", 20).of(at(476, 0, 64)),
        // The folio at 24 ends where the page-table page does.
        case(file(V6_18), 30, "16# [14-] 32#", "16. 16y 32.", 16).of(at(480, 0, 64)),
    ];
    cases.into_iter().for_each(Case::run);
}

#[test]
fn a_large_folio_at_the_end_of_the_file_is_mapped_whole() {
    // Seen on 6.18: a file of 1024 pages whose last 256 are one folio.
    case(file(V6_18), 20, "[30-]", "32y", 32).check();
    case(small_tables(file(V6_18)), 20, "16. [14-]", "16. 16y", 0).check();
}

#[test]
fn a_pmd_maps_its_folio_and_credits_nothing() {
    let small = |kernel| small_tables(file(kernel));
    let map = "16. [14-] 32.";
    for kernel in KERNELS {
        let limits =
            Limits { max_folio: Some(small(kernel).arch.max_cache_order), ..small(kernel) };
        let mut engine = case(limits, 20, map, "16. 16y 32.", 0).check();
        assert_eq!(engine.course(), "huge:16");
        // Not where a page-table page is in the place already.
        let mut engine = Engine::new(limits, Io::Waited, map);
        engine.ra.mmap_miss = 100;
        engine.tables.install(Vpn(31), 16);
        assert!(around(&mut engine, 20, false));
        assert_eq!(engine.course(), "map:16..31=16-16");
        assert_eq!(engine.ra.mmap_miss, 84);
        // One elsewhere does not matter.
        let mut engine = Engine::new(limits, Io::Waited, map);
        engine.tables.install(Vpn(15), 16);
        engine.tables.install(Vpn(32), 16);
        assert!(around(&mut engine, 20, false));
        assert_eq!(engine.course(), "huge:16");
    }
}

#[test]
fn what_a_pmd_cannot_map_is_mapped_by_pages() {
    let small = small_tables(file(V6_18));
    let cases = [
        // A smaller folio.
        case(small, 20, "16. [6-] 40.", "16. 8y 40.", 8),
        // The VMA ends inside the folio, or begins inside it.
        case(small, 20, "16. [14-] 32.", "16. 15y 33.", 15).of(part(0, 31)),
        case(small, 20, "16. [14-] 32.", "17. 15y 32.", 15).of(part(17, 64)),
        // Virtual addresses that are shifted by 4: the window ends with the page-table page.
        case(small, 20, "16. [14-] 32.", "16. 12y 36.", 12).of(at(4, 0, 64)),
        case(small, 30, "16. [14-] 32.", "28. 4y 32.", 4).of(at(4, 0, 64)),
        // Being read, or marked: not at all.
        case(small, 20, "16. (14-) 32.", "64.", 0),
        case(small, 20, "16. {14-} 32.", "64.", 0),
    ];
    cases.into_iter().for_each(Case::run);
}

#[test]
fn mapping_pages_puts_a_page_table_in_the_place() {
    let mut engine = Engine::new(small_tables(file(V6_18)), Io::Waited, "4# 12. [14-] 32.");
    around(&mut engine, 3, false);
    assert_eq!(engine.course(), "map:0..15=4-4");
    // The folio at 0 replaces what was there: the page-table page stays.
    let again = map::cache("[14-] [14-] 32.");
    engine.cache = again;
    around(&mut engine, 3, false);
    assert_eq!(engine.course(), "map:0..15=16-16");
    around(&mut engine, 20, false);
    assert_eq!(engine.course(), "huge:16");
}

#[test]
fn many_page_tables_are_kept_apart() {
    let limits = Limits { fault_around: PageCount(2), ..small_tables(limits(V6_18, PageCount(1))) };
    let mut engine = Engine::new(limits, Io::Waited, "2064.");
    for table in [0, 63, 64, 128] {
        engine.tables.install(Vpn(table * 16 + 3), 16);
    }
    for table in [0, 1, 62, 63, 64, 65, 127, 128] {
        let whole = format!("{}. [14-] {}.", table * 16, 2064 - table * 16 - 16 + 16);
        engine.cache = map::cache(whole.trim_start_matches("0. "));
        around(&mut engine, table * 16 + 5, false);
        let huge = format!("huge:{}", table * 16);
        assert_eq!(engine.course() != huge, [0, 63, 64, 128].contains(&table), "{table}");
    }
}

#[test]
fn a_whole_folio_lies_in_one_table() {
    let limits = limits(V6_18, PageCount(2048));
    let cache = map::cache("512. [62-] 1472.");
    let folio = cache.folio(PageIndex(530)).unwrap();
    let cases = [
        (part(0, 2048), true),
        (part(512, 576), true),
        (part(513, 2048), false),
        (part(0, 575), false),
        // Its last page is a table's last entry, then the next one's first.
        (at(448, 512, 2048), true),
        (at(449, 512, 2048), false),
        (at(511, 512, 2048), false),
        (at(512, 512, 2048), true),
    ];
    for (vma, whole) in cases {
        assert_eq!(maps_whole(folio, &vma, &limits), whole, "{vma:?}");
        let old = Limits { rules: file(V6_12).rules, ..limits };
        assert!(!maps_whole(folio, &vma, &old));
    }
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
            // Its folio has the workingset flag; that of the others does not matter.
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
    // A PMD still gives none.
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

/// The pages that reclaim keeps, because their entries are marked as accessed.
#[track_caller]
fn check_young(limits: Limits, index: u64, cache: &str, kept: &str) {
    let mut engine = Engine::new(limits, Io::Waited, cache);
    assert!(around(&mut engine, index, false));
    let mapping = Mapping { whole: engine.vma, split: None };
    engine.cache.shrink(engine.limits.file_pages, &mapping, &mut ());
    map::assert_cache(&format!("{index} of {cache}"), &engine.cache, kept);
}

#[test]
fn entries_are_young_on_x86_and_old_on_arm64() {
    let x86 = file(V6_18);
    check_young(x86, 37, "64#", "32. 16# 16.");
    check_young(x86, 20, "[30-] 32#", "[30-] 32.");
    check_young(x86, 20, "16# [6-][6-] 32#", "16. [6-][6-] 32.");
    // The page that faulted is accessed all the same.
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
