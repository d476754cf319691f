//! The instruction TLB: the contents of its levels, and which page-table entries join.

use filemap_core::units::{Order, Vpn};
use filemap_job::{JobFlags, SizeText};
use filemap_model::profile::{InstructionTlb, TlbLevel};
use filemap_model::tlb::{Tlb, TlbCounts, Translation};
use filemap_model::{Profile, StepStats, Timing, trace_timed};

/// Two entries in front of four in two sets; one entry covers at most 8 pages, or 64.
fn small() -> Tlb {
    let first = TlbLevel { entries: 2, ways: 2, hit_ns: 0, largest_bytes: 8 * 4096 };
    let second = TlbLevel { entries: 4, ways: 2, hit_ns: 3, largest_bytes: 64 * 4096 };
    Tlb::new(InstructionTlb { call_ns: 40, walk_ns: 30, first, second }, 4096)
}

/// The nanoseconds of each call.
fn times(tlb: &mut Tlb, order: u8, pages: &[u64], counts: &mut TlbCounts) -> Vec<u64> {
    let call = |&page| tlb.look_up(Translation { vpn: Vpn(page), order: Order(order) }, counts);
    pages.iter().map(call).collect()
}

#[test]
fn entries_leave_by_least_recent_use() {
    let mut tlb = small();
    // 0 and 2 share a set of the second level, where 4 replaces 0.
    let mut counts = TlbCounts::default();
    assert_eq!(times(&mut tlb, 0, &[0, 2, 0, 4, 2, 0], &mut counts), [30, 30, 0, 30, 3, 30]);
    assert_eq!(counts, TlbCounts { misses: 5, walks: 4 });
}

#[test]
fn one_entry_holds_a_run_up_to_what_the_level_can() {
    let mut tlb = small();
    // 64 pages: one entry of the second level, pieces of 8 in the first.
    assert_eq!(times(&mut tlb, 6, &[0, 7, 8, 63, 0], &mut TlbCounts::default()), [30, 0, 3, 3, 3]);
    // 128 pages are two there.
    let mut tlb = small();
    assert_eq!(times(&mut tlb, 7, &[0, 64, 127], &mut TlbCounts::default()), [30, 30, 3]);
}

/// The random phase of a 64 MiB file of stubs.
fn random(keys: &[(&str, &str)]) -> StepStats {
    let text = |key| keys.iter().find(|(name, _)| *name == key).map(|(_, value)| value.to_string());
    let spec = JobFlags {
        arch: text("arch").or(Some("arm64".into())),
        page_size: text("page_size").map(SizeText),
        map_shift: text("map_shift").map(|shift| shift.parse().unwrap()),
        advice: text("advice"),
        file_size: Some(SizeText("64m".into())),
        workload: Some("exec".into()),
        accesses: Some(20_000),
        ..JobFlags::default()
    };
    let job = spec.validate(None).unwrap();
    let traced = trace_timed(&job, &Profile::DEFAULT, Timing::Device, &mut ());
    traced.unwrap().phases[1]
}

#[test]
fn runs_of_entries_join_where_one_folio_fills_them_and_lies_alike() {
    // 16384 pages of 4 KiB in folios of 16: 1024 translations, which the second level holds.
    assert_eq!(random(&[]).tally.tlb.walks, 0);
    // One page off: none of them joins.
    assert!(random(&[("map_shift", "1")]).tally.tlb.walks > 15_000);
    // Off by a whole run: they do.
    assert_eq!(random(&[("map_shift", "16")]).tally.tlb.walks, 0);
    // Folios of 4 pages of 16 KiB are less than the 128 that join: 4096 translations.
    assert!(random(&[("page_size", "16k")]).tally.tlb.walks > 8_000);
    // x86-64 has no such bit, and code comes in base pages.
    assert!(random(&[("arch", "x86-64")]).tally.tlb.walks > 15_000);
    // Mapped by PMDs: 32 translations, fewer than the first level has.
    assert_eq!(random(&[("arch", "x86-64"), ("advice", "hugepage")]).tally.tlb.misses, 0);
}

#[test]
fn the_time_of_calls_is_that_of_the_call_and_of_its_translation() {
    let run = random(&[("page_size", "16k")]);
    let itlb = Profile::DEFAULT.itlb;
    let TlbCounts { misses, walks } = run.tally.tlb;
    let touch_ns = Profile::DEFAULT.cost.touch_ns;
    let expected = 20_000 * (touch_ns + itlb.call_ns)
        + (misses - walks) * itlb.second.hit_ns
        + walks * itlb.walk_ns;
    assert_eq!(run.elapsed_ns, expected);
}
