//! The folios that the cold phase of `exec` gets, for each page size, advice and switch, and when
//! the miss counter switches executable readahead off.

use filemap_core::decision::{Cause, Decision};
use filemap_core::page_cache::PageCache;
use filemap_core::units::FileId;
use filemap_job::{Job, JobFlags, SizeText};
use filemap_model::folio_orders;
use filemap_model::{Profile, Timing, trace, trace_timed};

/// 512 MiB of stubs on arm64 with ext4, 128 KiB of readahead, rules of the series' base.
fn job(page_size: &str, advice: &str, with: &str, workload: &str, accesses: u64) -> Job {
    let text = |text: &str| Some(text.to_string());
    let spec = JobFlags {
        kernel: text("mm-2026-05"),
        with: text(with),
        arch: text("arm64"),
        page_size: Some(SizeText(page_size.into())),
        advice: text(advice),
        file_size: Some(SizeText("512m".into())),
        exec: Some(true),
        workload: text(workload),
        accesses: Some(accesses),
        ..JobFlags::default()
    };
    spec.validate(None).unwrap()
}

/// Folios of the cold phase as order x number; its major and minor faults and readahead calls;
/// how many of 20,000 random calls missed either level of the TLB. Both phases add nothing else.
fn row(page_size: &str, advice: &str, with: &str) -> String {
    let job = job(page_size, advice, with, "exec", 20_000);
    let mut traced = trace_timed(&job, &Profile::DEFAULT, Timing::Device, &mut ()).unwrap();
    let orders = folio_orders(&traced.cache.file(FileId::FIRST), job.file_pages(0));
    let orders: Vec<_> =
        orders.iter().map(|(order, folios)| format!("{}x{folios}", order.0)).collect();
    let [cold, random] = traced.phases[..] else { panic!("two phases") };
    assert_eq!((cold.tally.pages_read, random.tally.pages_read), (job.file_pages(0).0, 0));
    assert_eq!((random.tally.major_faults, random.tally.minor_faults), (0, 0));
    let cold = cold.tally;
    format!(
        "{} | {} {} {} | {} {}",
        orders.join(" "),
        cold.major_faults,
        cold.minor_faults,
        cold.readahead_calls,
        random.tally.tlb.misses,
        random.tally.tlb.walks,
    )
}

/// Called in order, windows of 128 KiB hit often enough that the counter never matters: only
/// thp-order changes the cold phase, and only if a PMD-sized folio does not fit the cache. ext4 has
/// no folio above 8 MiB, which limits the PMD-sized ones of 16 KiB pages.
const TABLE: &[(&str, &str, &str, &str)] = &[
    ("4k", "normal", "", "4x8192 | 4096 4096 4096 | 19899 14919"),
    ("4k", "normal", "+exec-bypass-v5", "4x8192 | 4096 4096 4096 | 19899 14919"),
    ("4k", "normal", "+thp-order-v5", "4x8192 | 4096 4096 4096 | 19899 14919"),
    ("4k", "normal", "+exec-order-v5", "4x8192 | 4096 4096 4096 | 19899 14919"),
    ("4k", "hugepage", "", "9x256 | 1 255 129 | 16243 0"),
    ("4k", "hugepage", "+exec-bypass-v5", "9x256 | 1 255 129 | 16243 0"),
    ("4k", "hugepage", "+thp-order-v5", "9x256 | 1 255 129 | 16243 0"),
    ("4k", "hugepage", "+exec-order-v5", "9x256 | 1 255 129 | 16243 0"),
    ("16k", "normal", "", "2x8192 | 4096 4096 4096 | 19967 18707"),
    ("16k", "normal", "+exec-bypass-v5", "2x8192 | 4096 4096 4096 | 19967 18707"),
    ("16k", "normal", "+thp-order-v5", "2x8192 | 4096 4096 4096 | 19967 18707"),
    ("16k", "normal", "+exec-order-v5", "2x8192 | 4096 4096 4096 | 19967 18707"),
    ("16k", "hugepage", "", "9x64 | 1 190 9 | 16247 0"),
    ("16k", "hugepage", "+exec-bypass-v5", "9x64 | 1 190 9 | 16247 0"),
    ("16k", "hugepage", "+thp-order-v5", "9x64 | 1 190 9 | 16247 0"),
    ("16k", "hugepage", "+exec-order-v5", "9x64 | 1 190 9 | 16247 0"),
    ("16k", "hugepage", "+exec-order", "7x2 8x127 | 1 191 129 | 16247 0"),
    ("64k", "normal", "", "0x8192 | 4096 4096 4096 | 19875 14891"),
    ("64k", "normal", "+exec-bypass-v5", "0x8192 | 4096 4096 4096 | 19875 14891"),
    ("64k", "normal", "+thp-order-v5", "0x8192 | 4096 4096 4096 | 19875 14891"),
    ("64k", "normal", "+exec-order-v5", "0x8192 | 4096 4096 4096 | 19875 14891"),
    ("64k", "hugepage", "", "0x8192 | 4096 4096 4096 | 19875 14891"),
    ("64k", "hugepage", "+exec-bypass-v5", "0x8192 | 4096 4096 4096 | 19875 14891"),
    ("64k", "hugepage", "+thp-order-v5", "5x2 6x127 | 1 128 129 | 16262 0"),
    ("64k", "hugepage", "+exec-order-v5", "5x2 6x127 | 1 128 129 | 16262 0"),
    ("64k", "hugepage", "+exec-order", "5x2 6x127 | 1 128 129 | 16262 0"),
];

#[test]
fn folios_faults_and_tlb_misses() {
    let mut wrong = String::new();
    for (page_size, advice, series, expected) in TABLE {
        let found = row(page_size, advice, &format!("vma-bound{series}"));
        if found != *expected {
            wrong += &format!("{page_size} {advice} {series}: {found}, not {expected}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The outcome of each miss of 4096 calls at pages far apart on 64 KiB pages, in order: `w` a
/// window, `-` none.
fn course(with: &str) -> String {
    let job = job("64k", "normal", with, "stride:5003", 4096);
    let mut log = Vec::new();
    trace(&job, &Profile::DEFAULT, &mut log).unwrap();
    let letter = |decision: &Decision| match decision {
        Decision::Readahead { cause: Cause::Executable, .. } => Some('w'),
        Decision::NoReadahead { .. } => Some('-'),
        _ => None,
    };
    log.iter().filter_map(letter).collect()
}

#[test]
fn the_counter_switches_executable_readahead_off_for_good_on_64_kib_pages() {
    // Without fault-around only a hit on a cached page decrements the counter.
    let before = course("vma-bound");
    let off = before.find('-').unwrap();
    assert_eq!(off, 100);
    assert!(!before[off..].contains('w'), "{before}");
    for series in ["exec-bypass-v5", "exec-bypass"] {
        let after = course(&format!("vma-bound+{series}"));
        assert!(after.len() > 2000 && !after.contains('-'), "{} misses", after.len());
    }
}
