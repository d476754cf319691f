//! Folios mapped whole, by entries of one page table or by one PMD entry.

use filemap_core::address::entries::MappedFile;
use filemap_core::address::mapping::FileMapping;
use filemap_core::address::page_table::PageTables;
use filemap_core::address::vma::{Advice, AdviceFlag, ReadHint, Vma};
use filemap_core::cache::FileCache;
use filemap_core::fault::AccessKind;
use filemap_core::fault::map::{copy_mapped, free_tables, maps_whole, split_huge, unmap};
use filemap_core::lru::lists::LruLists;
use filemap_core::readahead::Limits;
use filemap_core::rules::{Arch, Family, Kernel};
use filemap_core::units::{PageCount, PageIndex, Vpn};

use crate::support::around::{Case, around, case};
use crate::support::engine::{Engine, Io};
use crate::support::machine::{KERNELS, advised, executable, limits, part, small_tables, xfs};
use crate::support::map;
use Kernel::{V6_12, V6_18, V7_0};

/// A VMA that starts at virtual page `start` and maps the pages `from..end`.
fn at(start: u64, from: u64, end: u64) -> Vma {
    Vma { start: Vpn(start), ..part(from, end) }
}

fn file(kernel: Kernel) -> Limits {
    limits(kernel, PageCount(64))
}

fn without_fault_around(limits: Limits) -> Limits {
    Limits { fault_around: PageCount(1), ..limits }
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
        large(40, "32# [14-] 16#", "32. 16y 16.", 16),
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
        // It ends with it, or starts with it.
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
fn fault_around_spares_a_folio_at_the_end_of_the_file() {
    // Seen on 6.18, also with a file of one page: without a page-table page it maps nothing.
    case(file(V6_18), 20, "[30-]", "32.", 0).check();
    for kernel in [V6_12, V6_18] {
        // The result of 6.12 was seen on 6.12.117.
        case(file(kernel), 0, "#", ".", 0).check();
    }
    // With one, it maps the window only; a PMD entry never.
    for limits in [file(V6_18), small_tables(file(V6_18))] {
        let mut engine = Engine::new(limits, Io::Waited, "16. [14-]");
        engine.tables.install(Vpn(31), limits.arch.pte_entries);
        assert!(around(&mut engine, 20, false));
        assert_eq!(engine.course(), "map:16..31=16-16");
    }
    // Pages before it in the window do not change that.
    let limits = Limits { fault_around: PageCount(8), ..file(V6_18) };
    case(limits, 5, "4# [2-] [6-]", "4. 8y 4.", 8).of(at(4, 0, 16)).check();
    // 6.1 has no such rule.
    case(small_tables(file(Kernel::V6_1)), 20, "16. [14-]", "16. 16y", 0).check();
    case(file(Kernel::V6_1), 0, "#", "y", 1).check();
}

#[test]
fn a_fault_maps_a_folio_at_the_end_of_the_file_whole() {
    let mut engine = Engine::new(file(V6_18), Io::Waited, "[30-]");
    engine.fault(20, AccessKind::Read);
    map::assert_mapped("at the end", &engine.cache, "32y");
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
        // Not if a page-table page exists there already.
        let mut engine = Engine::new(limits, Io::Waited, map);
        engine.ra.mmap_miss = 100;
        engine.tables.install(Vpn(31), 16);
        assert!(around(&mut engine, 20, false));
        assert_eq!(engine.course(), "map:16..31=16-16");
        assert_eq!(engine.ra.mmap_miss, 84);
        // A page-table page elsewhere does not matter.
        let mut engine = Engine::new(limits, Io::Waited, map);
        engine.tables.install(Vpn(15), 16);
        engine.tables.install(Vpn(32), 16);
        assert!(around(&mut engine, 20, false));
        assert_eq!(engine.course(), "huge:16");
    }
}

#[test]
fn pages_not_mappable_by_pmd_are_mapped_individually() {
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
fn mapping_pages_replaces_pmd_with_page_table() {
    let mut engine = Engine::new(small_tables(file(V6_18)), Io::Waited, "4# 12. [14-] 32.");
    around(&mut engine, 3, false);
    assert_eq!(engine.course(), "map:0..15=4-4");
    // The folio at 0 replaces the earlier ones: the page-table page stays.
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
fn the_page_found_is_mapped_with_its_folio_since_6_18() {
    // Without fault-around: the whole folio, if none of it is mapped, and it fits.
    let off = without_fault_around;
    let old = xfs(V6_12, PageCount(64));
    let whole = part(0, 64);
    let cases = [
        (off(file(V6_18)), whole, ".", "32. 16y 16."),
        (off(file(V6_18)), whole, "40. y", "32. y 7. y 23."),
        (off(file(V6_18)), whole, "40. c", "32. y 7. c 23."),
        (off(file(V6_18)), whole, "47. y", "32. y 14. y 16."),
        (off(file(V6_18)), whole, "31. y 16. y", "31. 17y y 15."),
        (off(file(V6_18)), part(32, 48), ".", "32. 16y 16."),
        (off(file(V6_18)), part(32, 47), ".", "32. y 31."),
        (off(file(V6_18)), part(31, 64), ".", "32. 16y 16."),
        (off(old), whole, ".", "32. y 31."),
    ];
    for (limits, vma, before, after) in cases {
        let mut engine = Engine::new(limits, Io::Waited, "32. [14-] 16.");
        engine.vma = vma;
        map::set_mapped(&mut engine.cache, before);
        engine.fault(32, AccessKind::Read);
        map::assert_mapped(&format!("{before} in {vma:?}"), &engine.cache, after);
    }
}

#[test]
fn the_page_found_is_mapped_by_a_pmd_where_it_can_be() {
    for limits in [small_tables(file(V6_18)), small_tables(xfs(V6_12, PageCount(64)))] {
        let off = without_fault_around(limits);
        let mut engine = Engine::new(off, Io::Waited, "32. [14-] 16.");
        engine.fault(35, AccessKind::Read);
        assert_eq!(engine.course(), "vma hit:0 huge:32 minor/1");
        map::assert_mapped("by a PMD", &engine.cache, "32. 16y 16.");
        // A page-table page that an earlier fault needed is in the way.
        let mut engine = Engine::new(off, Io::Waited, "32. # 31.");
        engine.fault(32, AccessKind::Read);
        engine.cache = map::cache("32. [14-] 16.");
        engine.course();
        engine.fault(35, AccessKind::Read);
        assert_eq!(engine.course(), "vma hit:0 minor/1");
        let mapped = if limits.rules.maps_whole_folio { "32. 16y 16." } else { "35. y 28." };
        map::assert_mapped("by pages", &engine.cache, mapped);
        // In shifted addresses too.
        let mut engine = Engine::new(off, Io::Waited, "32. [14-] 16.");
        engine.vma.start.0 = 3;
        engine.fault(35, AccessKind::Read);
        map::assert_mapped("shifted", &engine.cache, "35. y 28.");
    }
}

#[test]
fn large_folios_are_read_and_mapped() {
    // An executable mapping of arm64, whose folios of 64 KiB are read: whole at once.
    let arm = crate::support::machine::on(Family::Arm64, 4096, file(V6_18));
    let mut engine = Engine::new(arm, Io::Waited, "64.");
    engine.vma = executable(engine.vma);
    engine.fault(37, AccessKind::Read);
    let course = "vma miss:0 drop exec:32+16-0@4 wait:37 mmap map:32..47=16-16 major/2";
    assert_eq!(engine.course(), course);
    map::assert_mapped("code", &engine.cache, "32. 16y 16.");
}

#[test]
fn a_write_copies_a_page_that_was_only_read() {
    let mut engine = Engine::new(file(V6_18), Io::Waited, "8#");
    map::set_mapped(&mut engine.cache, "..yy....");
    copy_mapped(PageIndex(3), &mut engine.cache, &mut engine.log);
    map::assert_mapped("the page is copied", &engine.cache, "..yc....");
    assert_eq!(engine.course(), "copy:3");
}

/// Unmaps a mapping of one VMA. Returns the number of private copies freed.
fn unmap_all(vma: Vma, engine: &mut Engine) -> PageCount {
    let mapping = FileMapping::new(vma, None);
    unmap(&mapping, vma.pgoff, vma.end(), &engine.limits, &mut engine.cache)
}

#[test]
fn munmap_uses_folios_that_were_accessed_once_each() {
    // Accessed: both pages of the first folio, one of the second, none of the third.
    let cases = [(Advice::NORMAL, 2), (Advice::RANDOM, 0)];
    for (advice, used) in cases {
        let mut engine = Engine::new(file(V6_18), Io::Waited, "[][][] 2#");
        map::set_mapped(&mut engine.cache, "yyyyyyyc");
        for page in [0, 1, 2] {
            engine.cache.touch(PageIndex(page));
        }
        let vma = advised(advice, part(0, 8));
        assert_eq!(unmap_all(vma, &mut engine), PageCount(1), "the private copy");
        map::assert_mapped("nothing is mapped", &engine.cache, "8.");
        // A folio that was used once is referenced: the next use activates it.
        for page in [0, 2, 4, 6] {
            engine.cache.mark_accessed(PageIndex(page));
        }
        assert_eq!(engine.cache.active(), PageCount(2 * used), "{}", advice.name());
    }
}

#[test]
fn munmap_keeps_mappings_of_others() {
    let mut engine = Engine::new(file(V6_18), Io::Waited, "8#");
    map::set_mapped(&mut engine.cache, "yyyyyyyy");
    assert_eq!(unmap_all(part(2, 5), &mut engine), PageCount(0));
    map::assert_mapped("only its own pages", &engine.cache, "yy...yyy");
    assert_eq!(engine.cache.words_with_entries(PageIndex(2), PageIndex(5)), [0; 0]);
    assert_eq!(engine.cache.words_with_entries(PageIndex(2), PageIndex(6)), [0]);
}

#[test]
fn page_tables_are_freed_with_their_last_mapping() {
    let mut tables = PageTables::default();
    // Two mappings of three tables each, 16 entries a table: one more level joins them.
    for vpn in (0..96).step_by(16) {
        tables.install(Vpn(vpn), 16);
    }
    assert_eq!(tables.pages(), PageCount(6 + 1 + 1));
    tables.remove(Vpn(0), PageCount(40), 16);
    assert_eq!(tables.pages(), PageCount(3 + 1 + 1));
    assert!(!tables.is_installed(Vpn(32), 16) && tables.is_installed(Vpn(48), 16));
    tables.remove(Vpn(48), PageCount(48), 16);
    assert_eq!(tables.pages(), PageCount(0));
    tables.install(Vpn(0), 16);
    assert_eq!(tables.pages(), PageCount(3));
}

/// A read fault maps the folio of 16 pages by one PMD entry, on tables of 16 entries.
fn mapped_by_pmd() -> Engine {
    let mut engine = Engine::new(small_tables(file(V6_18)), Io::Waited, "[14-][14-] 32#");
    engine.vma = part(0, 64);
    engine.fault(3, AccessKind::Read);
    assert!(!engine.tables.is_installed(Vpn(3), 16), "there is no page-table page");
    engine
}

#[test]
fn boundary_inside_pmd_mapped_folio_splits_the_entry() {
    for (at, left) in [(0, "16y 48."), (16, "16y 48."), (5, "64."), (15, "64."), (20, "16y 48.")] {
        let mut engine = mapped_by_pmd();
        let mapping = FileMapping::new(part(0, 64), None);
        let tables = engine.tables.clone();
        split_huge(PageIndex(at), &mapping, &engine.limits, &tables, &mut engine.cache);
        map::assert_mapped(&format!("before page {at}"), &engine.cache, left);
    }
}

#[test]
fn nohugepage_prevents_a_pmd_entry() {
    let mut engine = Engine::new(small_tables(file(V6_18)), Io::Waited, "[14-][14-] 32#");
    engine.vma = advised(Advice::NORMAL.and(AdviceFlag::NoHuge), part(0, 64));
    engine.fault(3, AccessKind::Read);
    assert!(engine.tables.is_installed(Vpn(3), 16));
}

#[test]
fn dontneed_frees_page_tables_that_it_covers() {
    let mut tables = PageTables::default();
    for vpn in [0, 16, 32] {
        tables.install(Vpn(vpn), 16);
    }
    tables.install_for_copy(Vpn(48), 16);
    let before = tables.pages();
    tables.remove_lowest(Vpn(1), PageCount(46), 16);
    let are = |tables: &PageTables| [0, 16, 32, 48].map(|vpn| tables.is_installed(Vpn(vpn), 16));
    assert_eq!(are(&tables), [true, false, true, true]);
    assert_eq!(before - tables.pages(), PageCount(1), "those above stay");
    tables.remove_lowest(Vpn(0), PageCount(64), 16);
    assert_eq!(are(&tables), [false; 4]);
    tables.install(Vpn(16), 16);
    assert_eq!(before - tables.pages(), PageCount(2));
}

#[test]
fn dontneed_frees_tables_of_one_vma_since_6_18_and_on_arm64_since_7_0() {
    // Two VMAs share the second table.
    let mut mapping = FileMapping::new(part(0, 64), None);
    let random = AdviceFlag::Read(ReadHint::Random);
    mapping.advise(PageIndex(20), PageIndex(64), random);
    let arm = Arch::new(Family::Arm64, 4096).unwrap();
    for (limits, freed) in [
        (file(V6_18), [true, false, true]),
        (file(V6_12), [false; 3]),
        (Limits { arch: Arch { pte_entries: 16, ..arm }, ..file(V6_18) }, [false; 3]),
        (Limits { arch: Arch { pte_entries: 16, ..arm }, ..file(V7_0) }, [true, false, true]),
    ] {
        let limits =
            if limits.arch.family == Family::Arm64 { limits } else { small_tables(limits) };
        let mut tables = PageTables::default();
        for vpn in [0, 16, 32] {
            tables.install(Vpn(vpn), 16);
        }
        free_tables(&mapping, PageIndex(0), PageIndex(64), &limits, &mut tables);
        assert_eq!([0, 16, 32].map(|vpn| !tables.is_installed(Vpn(vpn), 16)), freed);
    }
}
