//! How 6.19 to 7.3, and the mm tree after it, differ from 6.18.

use filemap_core::address::vma::{Advice, Vma};
use filemap_core::decision::Cause;
use filemap_core::fault::{AccessKind, FaultResult};
use filemap_core::readahead::{Limits, ReadaheadState};
use filemap_core::rules::Family;
use filemap_core::rules::Kernel::{self, Mm0b2777a511b7, V6_18, V6_19, V7_1, V7_2, V7_3};
use filemap_core::series::Switch;
use filemap_core::units::{Order, PageCount, PageIndex};

use crate::support::around::case;
use crate::support::engine::{Engine, Io};
use crate::support::machine::{
    advised, counter, executable, limits, on, part, small_tables, stream, with, xfs,
};
use crate::support::map;
use crate::support::miss::{check, miss};

/// The last kernel without a rule that 7.2 has, and 7.2.
const BEFORE_AND_SINCE: [Kernel; 2] = [V7_1, V7_2];

fn file(kernel: Kernel) -> Limits {
    limits(kernel, PageCount(64))
}

#[test]
fn hugepage_misses_are_counted_since_6_19() {
    for (kernel, after, reads) in [(V6_18, 100, true), (V6_19, 101, false), (V7_2, 101, false)] {
        let mut engine = Engine::new(small_tables(file(kernel)), Io::Waited, "64.");
        engine.vma = advised(Advice::HUGEPAGE, engine.vma);
        engine.ra = counter(100);
        let read = miss(&mut engine, 37).is_some();
        assert_eq!((engine.ra.mmap_miss, read), (after, reads), "{}", kernel.name());
    }
}

/// Page size in bytes, largest folio of the file: order and size of the window of a miss, if the
/// advice determines it.
type HugeWindow = (u64, Option<u8>, Option<(u8, u64)>);

#[track_caller]
fn huge_windows(limits_with: impl Fn(u64) -> Limits, cases: &[HugeWindow]) {
    for &(page_size, max_folio, window) in cases {
        let limits = Limits { max_folio: max_folio.map(Order), ..limits_with(page_size) };
        let mut engine = Engine::new(limits, Io::Waited, "300.");
        engine.vma = advised(Advice::HUGEPAGE, engine.vma);
        let found = miss(&mut engine, 270).expect("the counter is low");
        let huge = (found.cause == Cause::HugePage).then_some((found.order.0, found.size.0));
        assert_eq!(huge, window, "{page_size} {max_folio:?}");
        if huge.is_some() {
            assert_eq!(found.start, PageIndex(270).align_down(found.order));
            assert_eq!(found.async_size.0 * 2, found.size.0);
            let largest = max_folio.map_or(Order(0), Order);
            assert_eq!(engine.ra.order, found.order.min(largest));
        }
    }
}

#[test]
fn hugepage_advice_reads_the_largest_folios_of_the_file_since_7_2() {
    let limits = |kernel: Kernel, page_size: u64| {
        let family = if page_size == 4096 { Family::X86_64 } else { Family::Arm64 };
        on(family, page_size, limits(kernel, PageCount(300)))
    };
    // The size of a PMD entry, whatever the file; nothing if that does not fit.
    huge_windows(
        |page_size| limits(V7_1, page_size),
        &[
            (4096, Some(9), Some((9, 1024))),
            (16384, Some(9), Some((11, 4096))),
            (65536, Some(11), None),
        ],
    );
    // 2 MiB at most, and as without the advice if the file has no large folios.
    let newest: [HugeWindow; 7] = [
        (4096, Some(9), Some((9, 1024))),
        (4096, Some(4), Some((4, 32))),
        (4096, None, None),
        (16384, Some(11), Some((7, 256))),
        (16384, Some(3), Some((3, 16))),
        (65536, Some(11), Some((5, 64))),
        (65536, None, None),
    ];
    huge_windows(|page_size| limits(V7_2, page_size), &newest);
    huge_windows(|page_size| with(&[Switch::ThpOrder], limits(V7_1, page_size)), &newest);
}

#[test]
fn thp_order_v5_sets_the_order_before_it_counts_the_miss() {
    let cases = [(Switch::ThpOrderV5, 4), (Switch::ThpOrder, 2)];
    for (switch, order) in cases {
        let limits = with(&[switch], small_tables(file(V6_19)));
        let mut engine = Engine::new(limits, Io::Waited, "64.");
        engine.vma = advised(Advice::HUGEPAGE, engine.vma);
        engine.ra = ReadaheadState { order: Order(2), ..counter(500) };
        assert_eq!(miss(&mut engine, 37), None);
        assert_eq!(engine.ra.order, Order(order), "{}", switch.name());
    }
}

/// The counter after a miss, and after a hit, in `vma` at 500.
fn counted(limits: Limits, vma: Vma) -> [u16; 2] {
    [("64.", 32), ("64#", 32)].map(|(before, index)| {
        let mut engine = Engine::new(limits, Io::Waited, before);
        engine.limits.fault_around = PageCount(1);
        engine.vma = vma;
        engine.ra = counter(500);
        engine.fault(index, AccessKind::Read);
        engine.ra.mmap_miss
    })
}

#[test]
fn code_and_sequential_mappings_leave_the_counter_alone_since_7_2() {
    let code = executable(part(0, 64));
    let sequential = advised(Advice::SEQUENTIAL, part(0, 64));
    for (kernel, of_code, of_sequential) in [
        (V7_1, [501, 499], [500, 499]),
        (V7_2, [500, 500], [500, 500]),
        (V7_3, [500, 500], [500, 500]),
    ] {
        assert_eq!(counted(file(kernel), part(0, 64))[1], 499);
        assert_eq!(counted(file(kernel), code), of_code, "{}", kernel.name());
        assert_eq!(counted(file(kernel), sequential), of_sequential, "{}", kernel.name());
    }
    let v5 = counted(with(&[Switch::ExecBypassV5], file(V7_1)), code);
    let v7 = counted(with(&[Switch::ExecBypass], file(V7_1)), code);
    assert_eq!((v5, v7), ([500, 499], [500, 500]));
}

#[test]
fn fault_around_credits_the_faulting_page_alone_since_7_2() {
    // All is new, or the faulting page was mapped already.
    for (kernel, credits) in [(V7_1, [16, 16]), (V7_2, [1, 0])] {
        case(file(kernel), 20, "64#", "16. 16y 32.", credits[0]).run();
        case(file(kernel), 20, "64#", "16. 16y 32.", credits[1]).mapped("20. y 43.").run();
    }
}

#[test]
fn the_fault_around_of_a_retry_credits_nothing_since_7_2() {
    for (kernel, credit) in [(V7_1, 16), (V7_2, 0)] {
        case(file(kernel), 20, "64#", "16. 16y 32.", credit).tried().run();
    }
}

#[test]
fn fault_around_in_code_or_a_sequential_mapping_credits_nothing_since_7_2() {
    for (kernel, credit) in [(V7_1, 16), (V7_2, 0)] {
        let code = executable(part(0, 64));
        case(file(kernel), 20, "64#", "16. 16y 32.", credit).of(code).run();
        let sequential = advised(Advice::SEQUENTIAL, part(0, 64));
        case(file(kernel), 20, "64#", "16. 16y 32.", credit).of(sequential).run();
    }
    let code = executable(part(0, 64));
    let v5 = with(&[Switch::ExecBypassV5], file(V7_1));
    case(v5, 20, "64#", "16. 16y 32.", 16).of(code).run();
    let v7 = with(&[Switch::ExecBypass], file(V7_1));
    case(v7, 20, "64#", "16. 16y 32.", 0).of(code).run();
}

#[test]
fn a_window_that_reaches_the_end_of_the_file_has_no_mark_since_7_2() {
    for kernel in BEFORE_AND_SINCE {
        let since = kernel == V7_2;
        let marked = |with: &'static str, without: &'static str| if since { without } else { with };
        // Read-around of 16 pages, in base pages of a file without large folios.
        let plain = Limits { max_folio: None, ..file(kernel) };
        check(plain, None, 32, "41.", "24. 12~ m3~ .");
        check(plain, None, 32, "40.", marked("24. 12~ m3~", "24. 16~"));
        check(plain, None, 32, "38.", marked("24. 10~ m3~", "24. 14~"));
        // The same in large folios.
        check(xfs(kernel, PageCount(41)), None, 32, "41.", "24. 12~ m3~ .");
        check(xfs(kernel, PageCount(40)), None, 32, "40.", marked("24. 12~ m3~", "24. 16~"));
        // The rest of a window after a cached page.
        check(plain, None, 32, "30. # 9.", marked("24. 6~ # 5~ m3~", "24. 6~ # 9~"));
    }
    // The state of the stream has a mark that does not exist; the layout does not.
    let plain = Limits { max_folio: None, ..file(V7_2) };
    let mut engine = check(plain, None, 32, "40.", "24. 16~");
    assert_eq!((engine.ra.size, engine.ra.async_size), (PageCount(16), PageCount(4)));
    assert_eq!(engine.course(), "around:24+16-4 base:24+16-0");
}

/// A course of a fault on page 32.
fn course(limits: Limits, ra: ReadaheadState, before: &str, io: Io) -> (String, FaultResult) {
    let mut engine = Engine::new(limits, io, before);
    engine.limits.fault_around = PageCount(1);
    engine.ra = ra;
    let outcome = engine.fault(32, AccessKind::Read);
    (engine.course(), outcome)
}

#[test]
fn the_mm_tree_after_7_3_keeps_its_lock_until_it_has_to_wait() {
    let new = file(Mm0b2777a511b7);
    let misses = ReadaheadState::NEW;
    let (asked, outcome) = course(new, misses, "64.", Io::Waited);
    assert_eq!(asked, "vma miss:0 around:24+16-4 drop wait:32 mmap tried-hit:1 major/2");
    assert_eq!(outcome.tries, 2);
    // Data that has arrived by then costs no lock.
    let (asked, _) = course(new, misses, "64.", Io::Immediate);
    assert_eq!(asked, "vma miss:0 around:24+16-4 major/1");
    // Nor does a mark on an uptodate page.
    let marked = "20. 12# M3# 28.";
    let (asked, _) = course(new, stream(20, 16, 4, 0), marked, Io::Waited);
    assert!(!asked.contains("drop") && asked.contains("async:36+"), "{asked}");
    let (asked, _) = course(file(V7_3), stream(20, 16, 4, 0), marked, Io::Waited);
    assert!(asked.contains("drop"), "{asked}");
    // A page that is read alone is waited for without the lock.
    let (asked, _) = course(new, counter(1000), "64.", Io::Waited);
    assert_eq!(asked, "vma miss:1000 single drop wait:32 mmap tried-hit:1000 major/2");
}

#[test]
fn vma_hold_waits_with_its_lock() {
    for kernel in [V6_18, V7_3, Mm0b2777a511b7] {
        let hold = with(&[Switch::VmaHold], file(kernel));
        for (ra, before) in [
            (ReadaheadState::NEW, "64."),
            (counter(1000), "64."),
            (stream(20, 16, 4, 0), "20. 12# M3# 28."),
        ] {
            for io in [Io::Waited, Io::Immediate] {
                let (asked, outcome) = course(hold, ra, before, io);
                assert_eq!(outcome.tries, 1, "{asked}");
                assert!(!asked.contains("drop") && !asked.contains("mmap"), "{asked}");
            }
        }
    }
}

#[test]
fn no_retry_uptodate_decides_nothing_here() {
    let plain = with(&[Switch::VmaRetry], file(V7_3));
    let both = with(&[Switch::NoRetryUptodate], plain);
    for before in ["64.", "64#", "20. 12# M3# 28."] {
        let course_with = |limits| course(limits, stream(20, 16, 4, 0), before, Io::Waited);
        assert_eq!(course_with(plain), course_with(both));
    }
    map::assert_cache("none", &Engine::new(plain, Io::Waited, "64.").cache, "64.");
}
