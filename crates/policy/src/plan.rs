//! Decides from what programs touched of a file how it is read the next time.
//!
//! Each way is priced with the touches in order: the windows that the kernel reads around misses
//! and ahead of runs, single pages, runs that are followed, and regions that are read before they
//! are touched. A way is taken only if it is clearly cheaper than the program's own.

use std::collections::BTreeSet;

use crate::costs::Costs;
use crate::reads::PageRange;
use crate::region::{REGION_PAGES, Regions};
use crate::state::by_region;
use crate::touches::{BLOCK_PAGES, REGION_BLOCKS, TouchHistory, TouchRun, TouchedRegion};

/// A region is worth reading whole if this many of its 32 blocks are touched.
const MIN_DENSE_BLOCKS: u32 = REGION_BLOCKS / 4 * 3;

/// Another way has to cost at most this percentage of the program's own.
const MAX_COST_PERCENT: u64 = 80;

/// Reading regions before they are touched has to save this percentage.
const MIN_PREFETCH_GAIN_PERCENT: u64 = 15;

/// Misses after which the kernel reads no more windows (`MMAP_LOTSAMISS`).
const MAX_MISSES: u64 = 100;

/// Faults of a long run before it is followed: a request comes after the program's next faults.
const RUN_FAULTS: u64 = 6;

/// Cost of a page that the governor reads for a run, in percent of a page of the kernel's windows:
/// it hears of the run later than the kernel does.
const FOLLOWED_PAGE_PERCENT: u64 = 175;

/// Maximum steps of a price, so that a plan is made in some milliseconds.
const MAX_STEPS: u64 = 400_000;

/// Run lengths that a plan remembers.
const MAX_LENGTHS: usize = 250;

/// What reading costs on the machine, and what the kernel does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanInput {
    /// Costs of a fault and of a page.
    pub costs: Costs,
    /// The kernel's own window in pages; 0 if it reads single pages.
    pub window_pages: u64,
    /// Size of the file in pages.
    pub file_pages: u64,
    /// What giving advice costs the program, in nanoseconds.
    pub advise_ns: u64,
    /// Maximum pages to read before they are touched.
    pub max_prefetch_pages: u64,
}

/// Which readahead a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedAdvice {
    /// The program's own.
    Unchanged,
    /// MADV_RANDOM, and runs are followed.
    Random,
}

/// How a file is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePlan {
    /// The advice of its mappings.
    pub advice: PlannedAdvice,
    /// Whether runs are followed by reads of the governor.
    pub follows_runs: bool,
    /// Regions to read when the file is mapped, in order.
    pub prefetch: Vec<PageRange>,
    /// Lengths of remembered runs in pages.
    pub run_lengths: Vec<u64>,
    /// What the dearest history costs if runs are followed, in faults.
    pub expected_faults: u64,
    /// Estimated cost for the program as it is, in nanoseconds.
    pub own_ns: u64,
    /// Estimated cost of the plan.
    pub planned_ns: u64,
}

/// The price of one way.
#[derive(Clone, Copy, Debug, Default)]
struct Price {
    ns: u64,
    steps: u64,
}

/// The plan for a file with these touch histories, the last one first.
#[must_use]
pub fn plan(histories: &[TouchHistory], input: &PlanInput) -> FilePlan {
    let is_random = histories.first().is_some_and(|last| last.is_random);
    let uncached: Vec<TouchHistory>;
    let histories = if histories.iter().any(|history| history.is_cached) {
        uncached = histories.iter().filter(|history| !history.is_cached).cloned().collect();
        &uncached[..]
    } else {
        histories
    };
    let prefetch = dense_regions(histories, input);
    let total = |way: &dyn Fn(&TouchHistory) -> u64| {
        histories.iter().map(way).fold(0_u64, u64::saturating_add)
    };
    let own = |ahead: &[PageRange]| {
        total(&|history| {
            if is_random {
                single_pages_ns(history, input, ahead, false)
            } else {
                windows_ns(history, input, ahead)
            }
        })
    };
    let followed = |ahead: &[PageRange]| {
        let advise_ns = if is_random { 0 } else { input.advise_ns };
        total(&|history| single_pages_ns(history, input, ahead, true).saturating_add(advise_ns))
    };
    let faults_of = |history: &TouchHistory| {
        let fault_ns = (input.costs.fault_ns / history.threads.max(1)).max(1);
        single_pages_ns(history, input, &[], true).div_ceil(fault_ns)
    };
    let own_ns = own(&[]);
    let advice = if is_random { PlannedAdvice::Unchanged } else { PlannedAdvice::Random };
    let unchanged = PlannedAdvice::Unchanged;
    let mut ways = vec![(unchanged, false, false, own_ns), (advice, true, false, followed(&[]))];
    if !prefetch.is_empty() {
        // Reading pages in vain costs more than a missed prefetch.
        let dear = |ns: u64| ns.saturating_mul(100) / (100 - MIN_PREFETCH_GAIN_PERCENT);
        ways.push((unchanged, false, true, dear(own(&prefetch))));
        ways.push((advice, true, true, dear(followed(&prefetch))));
    }
    let best = ways.into_iter().min_by_key(|(.., ns)| *ns);
    let limit_ns = own_ns / 100 * MAX_COST_PERCENT;
    let (advice, follows_runs, is_prefetched, planned_ns) =
        best.filter(|(.., ns)| *ns < limit_ns).unwrap_or((unchanged, false, false, own_ns));
    FilePlan {
        advice,
        follows_runs,
        prefetch: if is_prefetched { prefetch } else { Vec::new() },
        run_lengths: if follows_runs { run_lengths(histories) } else { Vec::new() },
        expected_faults: histories.iter().map(faults_of).max().unwrap_or(0),
        own_ns,
        planned_ns,
    }
}

/// The regions that were touched nearly whole each time, and at least twice, in order of their
/// first touch.
fn dense_regions(histories: &[TouchHistory], input: &PlanInput) -> Vec<PageRange> {
    let mut left = input.max_prefetch_pages;
    let mut dense: Vec<PageRange> = Vec::new();
    let Some((last, earlier)) = histories.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return dense;
    };
    let is_dense = |region: &TouchedRegion| region.blocks.count_ones() >= MIN_DENSE_BLOCKS;
    let of = |history: &TouchHistory| -> BTreeSet<u64> {
        history.regions.iter().filter(|own| is_dense(own)).map(|own| own.number).collect()
    };
    let earlier: Vec<BTreeSet<u64>> = earlier.iter().map(of).collect();
    for region in &last.regions {
        let pages = region.pages();
        let pages = PageRange { end: pages.end.min(input.file_pages), ..pages };
        let is_usual = is_dense(region) && earlier.iter().all(|own| own.contains(&region.number));
        if !is_usual || pages.count() == 0 || pages.count() > left {
            continue;
        }
        left -= pages.count();
        match dense.last_mut() {
            Some(last) if last.end == pages.first => last.end = pages.end,
            _ => dense.push(pages),
        }
    }
    dense
}

/// Lengths of runs, evenly chosen.
fn run_lengths(histories: &[TouchHistory]) -> Vec<u64> {
    let each = MAX_LENGTHS / histories.len().max(1);
    let lengths = histories.iter().flat_map(|history| {
        let short = history.short_run_milli_pages();
        let step = history.runs.len().div_ceil(each.max(1)).max(1);
        let runs = history.runs.iter().step_by(step);
        runs.map(move |run| history.milli_pages(*run, short).div_ceil(1000))
    });
    lengths.collect()
}

/// What `history` costs if the kernel reads its own windows, with `ahead` read before.
fn windows_ns(history: &TouchHistory, input: &PlanInput, ahead: &[PageRange]) -> u64 {
    let mut cached = Regions::default();
    let mut price = Price { ns: read_ahead(&mut cached, ahead, input), steps: 0 };
    let mut misses = 0;
    extrapolated(history, |run| {
        run_in_windows(history, run, input, &mut cached, &mut misses, &mut price);
        price
    })
}

fn run_in_windows(
    history: &TouchHistory,
    run: TouchRun,
    input: &PlanInput,
    cached: &mut Regions,
    misses: &mut u64,
    price: &mut Price,
) {
    let fault_ns = input.costs.fault_ns / history.threads.max(1);
    let is_cached =
        |cached: &mut Regions, page| cached.update(page, |region| region.is_around(page, 0));
    let end = run.first.saturating_add(run.pages).min(input.file_pages.max(run.first + 1));
    let mut page = run.first;
    while page < end {
        price.steps += 1;
        if is_cached(cached, page) {
            *misses = misses.saturating_sub(BLOCK_PAGES);
            page = (page / BLOCK_PAGES + 1).saturating_mul(BLOCK_PAGES);
            continue;
        }
        let is_behind = page > run.first && is_cached(cached, page - 1);
        let window = if *misses > MAX_MISSES { 1 } else { input.window_pages.max(1) };
        let first = if is_behind { page } else { page.saturating_sub(window / 2) };
        if !is_behind || window == 1 {
            *misses += 1;
            price.ns = price.ns.saturating_add(fault_ns);
        }
        let last = first.saturating_add(window).min(input.file_pages.max(page + 1));
        let fresh = add(cached, PageRange { first, end: last });
        if window > 1 {
            price.ns = price.ns.saturating_add(fresh.saturating_mul(input.costs.page_ns));
        }
    }
}

/// What `history` costs if faults read single pages, with `ahead` read before. With `follows_runs`
/// the rest of a run is read for it.
fn single_pages_ns(
    history: &TouchHistory,
    input: &PlanInput,
    ahead: &[PageRange],
    follows_runs: bool,
) -> u64 {
    let mut cached = Regions::default();
    let mut price = Price { ns: read_ahead(&mut cached, ahead, input), steps: 0 };
    let fault_ns = input.costs.fault_ns / history.threads.max(1);
    let short = history.short_run_milli_pages();
    extrapolated(history, |run| {
        let milli = history.milli_pages(run, short);
        let end = run.first.saturating_add(milli.div_ceil(1000).max(run.pages));
        let fresh = add(&mut cached, PageRange { first: run.first, end });
        price.steps += 1 + fresh / REGION_PAGES;
        if fresh == 0 {
            return price;
        }
        let milli = milli.min(fresh.saturating_mul(1000));
        let faults = if follows_runs { milli.min(RUN_FAULTS * 1000) } else { milli };
        let faults_ns = faults.saturating_mul(fault_ns) / 1000;
        let followed = fresh.saturating_sub(faults / 1000);
        let page_ns = input.costs.page_ns.saturating_mul(FOLLOWED_PAGE_PERCENT) / 100;
        let pages_ns = if follows_runs { followed.saturating_mul(page_ns) } else { 0 };
        price.ns = price.ns.saturating_add(faults_ns).saturating_add(pages_ns);
        price
    })
}

/// Marks the pages that are read before they are touched. Returns the cost.
fn read_ahead(cached: &mut Regions, ahead: &[PageRange], input: &PlanInput) -> u64 {
    let pages = ahead.iter().map(|pages| add(cached, *pages)).fold(0, u64::saturating_add);
    pages.saturating_mul(input.costs.page_ns)
}

/// Marks pages as cached. Returns how many of them were not.
fn add(cached: &mut Regions, pages: PageRange) -> u64 {
    by_region(pages)
        .map(|part| cached.update(part.first, |region| region.add_around(part, 0)))
        .sum()
}

/// The price of all runs of `history`: those that are not kept, or take too many steps, cost what
/// the last quarter of the others did.
fn extrapolated(history: &TouchHistory, mut price_after: impl FnMut(TouchRun) -> Price) -> u64 {
    let (mut prices, mut last) = (Vec::with_capacity(history.runs.len()), 0);
    for run in &history.runs {
        let price = price_after(*run);
        last = price.ns;
        prices.push(price.ns);
        if price.steps > MAX_STEPS {
            break;
        }
    }
    let done = prices.len();
    let rest = history.total_runs.saturating_sub(done as u64);
    let from = done - done.div_ceil(4);
    if rest == 0 || done == from {
        return last;
    }
    let before = if from == 0 { 0 } else { prices[from - 1] };
    let rate = u128::from(last.saturating_sub(before)) * u128::from(rest) / (done - from) as u128;
    last.saturating_add(u64::try_from(rate).unwrap_or(u64::MAX))
}
