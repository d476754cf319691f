//! The windows of misses that request folios of their own order: executable mappings, and those
//! advised HUGEPAGE.

use filemap_core::address::vma::Advice;
use filemap_core::decision::Cause;
use filemap_core::readahead::{Limits, ReadaheadState};
use filemap_core::rules::{Family, Kernel};
use filemap_core::series::Switch;
use filemap_core::units::{Order, PageCount, PageIndex};

use crate::support::engine::{Engine, Io};
use crate::support::machine::{
    KERNELS, advised, counter, executable, limits, on, part, small_tables, stream, with,
};
use crate::support::map;
use crate::support::miss::{check, miss};
use Kernel::{V6_12, V6_18};

fn file(kernel: Kernel) -> Limits {
    limits(kernel, PageCount(64))
}

#[test]
fn executable_mappings_on_x86_read_ahead_without_a_mark() {
    let code = |from, end| Some(executable(part(from, end)));
    let cases = [
        (code(0, 64), 32, "64.", "32. 16~ 16."),
        (code(0, 64), 0, "64.", "16~ 48."),
        // Inside the VMA, at either end.
        (code(32, 40), 32, "64.", "32. 8~ 24."),
        (code(30, 40), 39, "64.", "39. ~ 24."),
        (code(30, 46), 30, "64.", "30. 16~ 18."),
        (code(0, 64), 60, "64.", "60. 4~"),
        (code(0, 64), 32, "40. ## 22.", "32. 8~ ## 6~ 16."),
    ];
    for (vma, index, before, after) in cases {
        let engine = check(file(V6_18), vma, index, before, after);
        assert_eq!((engine.ra.async_size, engine.ra.mmap_miss), (PageCount(0), 1));
    }
    // 6.12 has no such rule.
    check(file(V6_12), code(30, 34), 32, "64.", "24. 12~ m3~ 24.");
}

#[test]
fn executable_mappings_on_arm64_ask_for_folios_of_64_kib() {
    let code = |from, end| Some(executable(part(from, end)));
    let limits = |page_size| on(Family::Arm64, page_size, file(V6_18));
    let cases = [
        // Order 4: from an aligned start to an aligned end.
        (4096, code(0, 64), 37, "64.", "32. (14-) 16."),
        (4096, code(0, 64), 48, "64.", "48. (14-)"),
        // The VMA starts after the aligned start: a longer window, in folios that fit.
        (4096, code(35, 60), 37, "64.", "35. ~ (--) (6-) (6-) (--) 4."),
        (4096, code(35, 64), 37, "64.", "35. ~ (--) (6-) (14-)"),
        (4096, code(33, 36), 35, "64.", "33. ~ () 28."),
        // Order 2.
        (16384, code(0, 64), 37, "64.", "36. (--)(--)(--)(--) 12."),
        (16384, code(0, 50), 37, "64.", "36. (--)(--)(--)() 14."),
        // Order 0.
        (65536, code(0, 64), 37, "64.", "37. 16~ 11."),
    ];
    for (page_size, vma, index, before, after) in cases {
        check(limits(page_size), vma, index, before, after);
    }
    // 12 pages of readahead end in the middle of a folio of 16: the end is aligned up.
    let odd = Limits { ra_pages: PageCount(12), ..limits(4096) };
    check(odd, code(0, 64), 37, "64.", "32. (14-) 16.");
    check(odd, code(0, 46), 37, "64.", "32. (6-)(--)() 18.");
}

#[test]
fn hugepage_advice_reads_two_folios_of_a_pmd_and_counts_nothing() {
    let cases = [
        (V6_18, 37, "64.", "32. (14-) <14->"),
        (V6_18, 32, "64.", "32. (14-) <14->"),
        (V6_18, 47, "64.", "32. (14-) <14->"),
        (V6_18, 48, "64.", "48. (14-)"),
        (V6_18, 0, "40.", "(14-) <14-> 8."),
        // The end of the file leaves no room for the second, or for a whole one.
        (V6_18, 17, "40.", "16. (14-) <6->"),
        (V6_18, 33, "40.", "32. (6-)"),
        // A cached page: the rest is laid out in base pages, which are marked the same way.
        (V6_18, 37, "35. # 28.", "32. 3~ # 12~ m15~"),
        (V6_18, 37, "50. # 13.", "32. (14-) m~ # 13~"),
        (V6_18, 37, "48. # 15.", "32. (14-) # 15~"),
        // ext4 of 6.12 has base pages.
        (V6_12, 37, "64.", "32. 16~ m15~"),
    ];
    for (kernel, index, before, after) in cases {
        let mut engine = Engine::new(small_tables(file(kernel)), Io::Waited, before);
        engine.vma = advised(Advice::HUGEPAGE, engine.vma);
        engine.ra = ReadaheadState { mmap_miss: 500, ..stream(5, 6, 2, 0) };
        let window = miss(&mut engine, index).expect("no counter stops huge pages");
        let case = format!("{} fault on {index} of {before}", kernel.name());
        map::assert_cache(&case, &engine.cache, after);
        assert_eq!((window.size, window.async_size), (PageCount(32), PageCount(16)), "{case}");
        assert_eq!(window.order.0, 4, "{case}");
        // The start of the stream is unchanged, and so is the counter.
        let ReadaheadState { start, size, async_size, mmap_miss, .. } = engine.ra;
        let expected = (PageIndex(5), PageCount(32), PageCount(16), 500);
        assert_eq!((start, size, async_size, mmap_miss), expected, "{case}");
    }
}

#[test]
fn hugepage_advice_needs_a_pmd_that_the_page_cache_can_hold() {
    // 64 KiB pages: a PMD folio has order 13, the page cache at most 11.
    let big = on(Family::Arm64, 65536, file(V6_18));
    let vma = Some(advised(Advice::HUGEPAGE, part(0, 64)));
    let engine = check(big, vma, 32, "64.", "24. 12~ m3~ 24.");
    assert_eq!(engine.ra.mmap_miss, 1);
    // 16 KiB pages: order 11 of at most 11. The file holds only a part of the folio.
    let middle = on(Family::Arm64, 16384, file(V6_18));
    let engine = check(middle, vma, 32, "64.", "(62-)");
    assert_eq!((engine.ra.size, engine.ra.mmap_miss), (PageCount(4096), 0));
}

#[test]
fn exec_bypass_takes_executable_mappings_from_the_counter() {
    let versions = [Switch::ExecBypass, Switch::ExecBypassV5];
    for (kernel, version) in KERNELS.into_iter().flat_map(|kernel| versions.map(|v| (kernel, v))) {
        let bypass = with(&[version], file(kernel));
        let cases = [(500, true, 500), (500, false, 501), (0, true, 0), (0, false, 1)];
        for (before, code, after) in cases {
            let mut engine = Engine::new(bypass, Io::Waited, "64.");
            engine.vma.executable = code;
            engine.ra = counter(before);
            let read = miss(&mut engine, 32).is_some();
            assert_eq!(engine.ra.mmap_miss, after, "{} {before} {code}", kernel.name());
            assert_eq!(read, code || before == 0, "{} {before} {code}", kernel.name());
        }
    }
}

#[test]
fn hugepage_misses_are_counted_on_the_base_of_the_exec_order_series() {
    let huge = advised(Advice::HUGEPAGE, part(0, 64));
    let base = small_tables(file(Kernel::Mm2026_05));
    let bypass = with(&[Switch::ExecBypass], base);
    let cases = [
        (base, huge, 0, 1, true),
        (base, huge, 99, 100, true),
        (base, huge, 100, 101, false),
        (base, executable(huge), 100, 101, false),
        (bypass, executable(huge), 100, 100, true),
        (bypass, huge, 100, 101, false),
        (small_tables(file(V6_18)), huge, 100, 100, true),
    ];
    for (limits, vma, before, after, reads) in cases {
        let mut engine = Engine::new(limits, Io::Waited, "64.");
        engine.vma = vma;
        engine.ra = counter(before);
        let read = miss(&mut engine, 37).is_some();
        assert_eq!((engine.ra.mmap_miss, read), (after, reads), "{vma:?} {before}");
        map::assert_cache("huge", &engine.cache, if reads { "32. (14-) <14->" } else { "64." });
    }
}

#[test]
fn thp_order_v5_reads_what_the_page_cache_can_hold() {
    let huge = advised(Advice::HUGEPAGE, part(0, 128));
    let limits_with = |page_size, switches: &[Switch]| {
        let file = limits(V6_18, PageCount(128));
        with(switches, on(Family::Arm64, page_size, file))
    };
    let thp = &[Switch::ThpOrderV5][..];
    // Page size, switches, largest folio of the mapping: order and length of the window.
    let cases = [
        // A PMD folio of 64 KiB pages does not fit: 2 MiB, order 5.
        (65536, thp, 11, Some((5, 64))),
        (65536, thp, 5, Some((5, 64))),
        (65536, thp, 4, Some((4, 32))),
        (65536, &[][..], 11, None),
        (65536, thp, 12, None),
        // Where it fits nothing changes.
        (4096, thp, 9, Some((9, 1024))),
        (4096, thp, 4, Some((9, 1024))),
        (16384, thp, 11, Some((11, 4096))),
        (4096, &[][..], 9, Some((9, 1024))),
    ];
    for (page_size, switches, max_folio, window) in cases {
        let limits =
            Limits { max_folio: Some(Order(max_folio)), ..limits_with(page_size, switches) };
        let mut engine = Engine::new(limits, Io::Waited, "128.");
        engine.vma = huge;
        engine.ra = counter(7);
        let found = miss(&mut engine, 70).expect("the counter is low");
        let case = format!("{page_size} {switches:?} {max_folio}");
        let Some((order, size)) = window else {
            assert_eq!((found.cause, engine.ra.mmap_miss), (Cause::ReadAround, 8), "{case}");
            continue;
        };
        assert_eq!((found.cause, engine.ra.mmap_miss), (Cause::HugePage, 7), "{case}");
        assert_eq!((found.order, found.size), (Order(order), PageCount(size)), "{case}");
        assert_eq!(found.async_size, PageCount(size / 2), "{case}");
        assert_eq!(found.start, PageIndex(70).align_down(Order(order)), "{case}");
    }
    // Index 70: the folios of order 5 at 64 and 96.
    let engine = check(limits_with(65536, thp), Some(huge), 70, "128.", "64. (30-) <30->");
    assert_eq!(engine.ra.order, Order(5));
}
