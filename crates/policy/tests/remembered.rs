//! What is remembered of a file, and the plan that is made of it.

use std::slice;

use crate::support::{COSTS, LARGEST, Random, asked, whole};
use filemap_policy::{
    FilePlan, FilePolicy, KernelWindow, MAX_REGIONS, MAX_RUNS, PlanInput, PlannedAdvice,
    TouchCollector, TouchHistory, TouchRun, plan,
};

/// Pages of 4 GiB.
const LARGE: u64 = 1 << 20;

/// The kernel's windows with `read_ahead_kb` of 8192 and of 128.
const WINDOWS: [u64; 2] = [2048, 32];

/// What is seen of `touches` of a mapping that the kernel reads ahead for: the first page of each
/// block; or each page if `is_exact`.
fn history(touches: &[u64], is_exact: bool) -> TouchHistory {
    let mut collector = TouchCollector::new(is_exact, false);
    let mut seen = std::collections::BTreeSet::new();
    for &page in touches {
        if seen.insert(if is_exact { page } else { page / 16 }) {
            collector.on_touch(page, 1);
        }
    }
    collector.history()
}

fn input(window_pages: u64, file_pages: u64) -> PlanInput {
    let (advise_ns, max_prefetch_pages) = (200_000, 1 << 17);
    PlanInput { costs: COSTS, window_pages, file_pages, advise_ns, max_prefetch_pages }
}

#[test]
fn runs_are_joined_across_blocks_that_fault_around_maps() {
    let scan = history(&(5..1000).collect::<Vec<_>>(), false);
    assert_eq!(scan.runs, [TouchRun { first: 5, pages: 992 - 5 + 1 }]);
    assert_eq!((scan.total_runs, scan.regions.len(), scan.blocks()), (1, 2, 63));
    // Folios of 64 and of 512 pages are mapped as a whole.
    let mut large = TouchCollector::new(false, false);
    [3, 16, 64, 128, 512, 1024].into_iter().for_each(|page| large.on_touch(page, 1));
    let large = large.history();
    assert_eq!(large.runs, [TouchRun { first: 3, pages: 1022 }]);
    assert_eq!(large.blocks(), 65);
    // Two threads that scan by turns.
    let two: Vec<u64> = (0..512).flat_map(|page| [page, 4096 + page]).collect();
    assert_eq!(history(&two, true).runs.len(), 2);
    assert_eq!(history(&two, false).runs.len(), 2);
    // Look-ups are runs of their own.
    let apart: Vec<u64> = (0..100).map(|number| number * 7919 % 65_536).collect();
    assert_eq!(history(&apart, true).runs.len(), 100);
}

/// Fault-around hides the second page of most look-ups of two; the estimate finds it.
#[test]
fn lengths_of_short_runs_are_estimated() {
    let mut random = Random::NEW;
    for pages in [1, 2, 4, 8] {
        let coarse = history(&random.runs(4000, pages, LARGE), false);
        let milli = coarse.short_run_milli_pages();
        let expected = pages * 1000;
        assert!(milli.abs_diff(expected) <= 150 + expected / 8, "{pages}: {milli}");
    }
}

/// What was cached shows nothing of what readahead gains; a cold run beside it does.
#[test]
fn touches_of_cached_pages_decide_nothing() {
    let lookups: Vec<u64> = (0..2000).map(|number| number * 7919 % LARGE).collect();
    let cold = history(&lookups, false);
    let cached = TouchHistory { is_cached: true, ..cold.clone() };
    let advice = |histories: &[TouchHistory]| plan(histories, &input(2048, LARGE)).advice;
    assert_eq!(advice(slice::from_ref(&cold)), PlannedAdvice::Random);
    assert_eq!(advice(slice::from_ref(&cached)), PlannedAdvice::Unchanged);
    assert_eq!(advice(&[cached, cold]), PlannedAdvice::Random);
}

#[test]
fn histories_are_bounded() {
    let mut collector = TouchCollector::new(true, false);
    for number in 0..MAX_RUNS as u64 * 4 {
        collector.on_touch(number * 1000, number);
    }
    let history = collector.history();
    assert_eq!((history.runs.len(), history.regions.len()), (MAX_RUNS, MAX_REGIONS));
    assert_eq!(history.total_runs, MAX_RUNS as u64 * 4);
    let longest = u64::MAX / 4096;
    collector.on_touch(longest, 0);
    let input = PlanInput { file_pages: longest + 1, ..input(2048, 0) };
    assert!(plan(&[collector.history()], &input).own_ns > 0);
}

#[test]
fn threads_count_as_often_as_the_busiest() {
    let mut collector = TouchCollector::new(true, false);
    for number in 0..100 {
        collector.on_touch(number * 1000, number % 4);
    }
    assert_eq!(collector.history().threads, 4);
    assert_eq!(TouchCollector::new(true, false).history().threads, 1);
}

/// Name, touches, pages of the file, and the advice with windows of 8 MiB and of 128 KiB.
type Row = (&'static str, Vec<u64>, u64, [PlannedAdvice; 2]);

fn rows() -> Vec<Row> {
    use PlannedAdvice::{Random as Single, Unchanged};
    let mut random = Random::NEW;
    let mixed: Vec<u64> = (0..40)
        .flat_map(|_| {
            let scan = random.runs(1, 1024, 1 << 17);
            scan.into_iter().chain(random.pages(12, 1 << 17)).collect::<Vec<_>>()
        })
        .collect();
    vec![
        ("no touch", Vec::new(), LARGE, [Unchanged; 2]),
        ("one touch", vec![7], LARGE, [Single, Unchanged]),
        ("look-ups of a large store", random.pages(2000, LARGE), LARGE, [Single; 2]),
        ("a scan", (0..LARGE / 8).collect(), LARGE / 8, [Unchanged; 2]),
        ("a scan of a part", (9..50_000).collect(), LARGE, [Unchanged; 2]),
        ("records of 8 MiB", random.runs(20, 2048, LARGE), LARGE, [Unchanged; 2]),
        ("look-ups all over a small file", random.pages(20_000, 8192), 8192, [Unchanged; 2]),
        ("scans with look-ups", mixed, 1 << 17, [Single, Unchanged]),
        ("records of two pages", random.runs(500, 2, LARGE), LARGE, [Single, Unchanged]),
    ]
}

#[test]
fn plan_takes_the_cheaper_way() {
    for (name, touches, pages, expected) in rows() {
        for is_exact in [false, true] {
            let history = history(&touches, is_exact);
            let advice = WINDOWS.map(|window| {
                let plan = plan(slice::from_ref(&history), &input(window, pages));
                assert!(plan.planned_ns <= plan.own_ns, "{name}");
                plan.advice
            });
            assert_eq!(advice, expected, "{name}, exact: {is_exact}");
        }
    }
}

/// What is touched nearly whole in no order is read before.
#[test]
fn dense_regions_are_read_before_they_are_touched() {
    let mut random = Random::NEW;
    let touches = random.pages(20_000, 8192);
    let dense = history(&touches, false);
    let plan_with = |most| {
        let input = PlanInput { max_prefetch_pages: most, ..input(32, 8192) };
        plan(&[dense.clone(), dense.clone()], &input)
    };
    let FilePlan { prefetch, planned_ns, own_ns, .. } = plan_with(8192);
    let all: u64 = prefetch.iter().map(|pages| pages.count()).sum();
    assert_eq!(all, 8192);
    assert!(planned_ns < own_ns);
    assert_eq!(plan_with(511).prefetch, []);
    let once = plan(slice::from_ref(&dense), &input(32, 8192));
    assert_eq!(once.prefetch, [], "once may be chance");
    let scan = history(&(0..8192).collect::<Vec<_>>(), false);
    let scans = [scan.clone(), scan];
    assert_eq!(plan(&scans, &input(2048, 8192)).prefetch, [], "the kernel reads it as fast");
}

/// A program that advises MADV_RANDOM itself: runs are followed, nothing is advised.
#[test]
fn runs_of_a_program_that_advises_random_are_followed() {
    let mut random = Random::NEW;
    let mut of = |pages: u64| {
        let mut collector = TouchCollector::new(true, true);
        random.runs(40, pages, LARGE).into_iter().for_each(|page| collector.on_touch(page, 1));
        plan(&[collector.history()], &input(2048, LARGE))
    };
    let scans = of(1024);
    assert_eq!((scans.advice, scans.follows_runs), (PlannedAdvice::Unchanged, true));
    assert!(scans.run_lengths.iter().all(|pages| *pages >= 1024));
    assert!(!of(1).follows_runs);
}

/// The first page of a run of remembered length brings the rest; look-ups bring nothing.
#[test]
fn remembered_lengths_are_followed_from_the_first_fault() {
    let bounds = whole(LARGE);
    let mut runs = FilePolicy::following(LARGEST, COSTS, [64; 100], u64::MAX);
    assert_eq!(asked(&mut runs, 5000, bounds), [(5001, 5071)], "to the end of the bucket");
    let mut single = FilePolicy::following(LARGEST, COSTS, [1; 100], u64::MAX);
    for page in [5000, 90_000, 5001, 300_000] {
        assert_eq!(asked(&mut single, page, bounds), []);
    }
}

/// A program that scans where look-ups are remembered is left to the kernel after some faults, and
/// one that looks up is not.
#[test]
fn program_that_behaves_otherwise_is_left_to_the_kernel() {
    let bounds = whole(1 << 15);
    let faults = |pages: &mut dyn Iterator<Item = u64>| {
        let mut policy = FilePolicy::following(0x1000, COSTS, [1; 100], u64::MAX);
        policy.set_window(KernelWindow { pages: 2048, page_ns: 3000 });
        let left = pages.take_while(|page| {
            asked(&mut policy, *page, bounds);
            !policy.is_left_to_kernel()
        });
        left.count()
    };
    // A stride of 7 pages is no run.
    let stride = faults(&mut (0..(1 << 15) / 7).map(|number| number * 7919 % 2048));
    assert!((50..200).contains(&stride), "{stride}");
    let mut random = Random::NEW;
    assert_eq!(faults(&mut random.pages(300, 1 << 15).into_iter()), 300);
}

/// Look-ups all over a file read it in windows soon, and then each costs a fault that would have
/// been saved: a few are handed back only if more come than are remembered.
#[test]
fn expected_faults_are_no_reason_to_hand_back() {
    let pages = 1 << 15;
    let (mut random, mut same) = (Random::NEW, Random::NEW);
    let lookups: Vec<u64> = random.pages(1000, pages);
    let expected = plan(&[history(&lookups, true)], &input(2048, pages)).expected_faults;
    assert!((950..=1000).contains(&expected), "{expected}");
    let mut left_after = |expected: u64| {
        let mut policy = FilePolicy::following(0x1000, COSTS, [1; 100], expected);
        policy.set_window(KernelWindow { pages: 2048, page_ns: COSTS.page_ns });
        let more = same.pages(4000, pages);
        same = Random::NEW;
        let faults = more.into_iter().take_while(|page| {
            asked(&mut policy, *page, whole(pages));
            !policy.is_left_to_kernel()
        });
        faults.count()
    };
    // Reading all costs as much as 1,230 faults: half of that, and as many to come.
    let (unknown, remembered) = (left_after(u64::MAX), left_after(expected));
    assert!((550..800).contains(&unknown), "{unknown}");
    assert!((1050..1300).contains(&remembered), "{remembered}");
}
