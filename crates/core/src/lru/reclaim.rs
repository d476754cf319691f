//! Reclaim of a whole machine: two lists, batch by batch.

use super::lists::{LruLists, Scan, ShrinkStats};
use super::statistics::ListSizes;
use crate::address::reverse_map::ReverseMap;
use crate::decision::Log;
use crate::units::PageCount;

pub use super::judge::{
    AccessEffect, AccessEffects, FolioVerdict, PageVerdicts, Referenced, access_effect,
    access_effects, judge_folio, judge_pages,
};

/// Pages scanned per batch (`SWAP_CLUSTER_MAX`); goals are whole batches.
pub const BATCH: PageCount = PageCount(32);

/// Initial scan priority (`DEF_PRIORITY`): `1/2^12` of both lists, then twice as much each time.
pub(super) const FIRST_PRIORITY: u32 = 12;

/// log2 of the bytes in one GiB, for the ratio of the lists.
const GIB_SHIFT: u32 = 30;

/// A reclaim: evicts at least the goal, rounded up to whole batches, or as much as possible.
///
/// [`MachineReclaim::step`] is called until it returns [`ReclaimStep::Done`]. Between steps the
/// caller may let other tasks run, let time pass for the scanned pages, or give up;
/// [`MachineReclaim::evicted`] is the number of pages evicted by then.
///
/// The active list is aged as well if the statistics show that it has outgrown its share, or if
/// nothing can be evicted otherwise.
///
/// Mirrors `do_try_to_free_pages` and `shrink_lruvec` of the classic lists, 6.12 and 6.18. Test:
/// `tests/aging.rs`.
#[derive(Debug)]
pub struct MachineReclaim {
    goal: PageCount,
    evicted: PageCount,
    /// Whether passes include the active list.
    ages: bool,
    /// Number of passes since anything was evicted.
    idle_passes: u32,
    /// Pages evicted by the current pass.
    freed: PageCount,
    /// Scan priority of the next round over both lists.
    priority: u32,
    round: Option<ScanRound>,
    is_done: bool,
}

/// Result of a step of reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimStep {
    /// Part of the lists was scanned, and there may be more to do.
    Batch(ShrinkStats),
    /// Nothing was left to do. The total number of evicted pages.
    Done(PageCount),
}

/// One scan along the inactive list, with the ageing that belongs to it.
#[derive(Debug)]
struct ScanRound {
    /// Pages to evict.
    goal: PageCount,
    /// Pages on the lists at the start.
    inactive: PageCount,
    active: PageCount,
    /// Inactive pages not scanned yet: no page is scanned twice.
    left: PageCount,
    /// Results so far.
    shrunk: ShrinkStats,
}

impl MachineReclaim {
    /// A new reclaim, given the flushed list sizes.
    #[inline]
    pub fn new(goal: PageCount, known: ListSizes, page_size: u64) -> MachineReclaim {
        let goal = PageCount(goal.0.next_multiple_of(BATCH.0));
        MachineReclaim {
            goal,
            evicted: PageCount(0),
            ages: inactive_is_low(known.inactive, known.active, page_size),
            idle_passes: 0,
            freed: PageCount(0),
            priority: FIRST_PRIORITY,
            round: None,
            is_done: goal == PageCount(0),
        }
    }

    /// Scans at most `look` pages, rounded up to whole folios, at least one; ages the active list
    /// at the end of a round over both lists.
    #[inline]
    pub fn step<L: LruLists>(
        &mut self,
        look: PageCount,
        lists: &mut L,
        mappings: &ReverseMap,
        log: &mut impl Log,
    ) -> ReclaimStep {
        if self.is_done {
            return ReclaimStep::Done(self.evicted);
        }
        let mut round = match self.round.take() {
            Some(round) => round,
            None => self.begin_round(lists),
        };
        let (shrunk, goes_on) = self.scan(look, &mut round, lists, mappings, log);
        if goes_on {
            self.round = Some(round);
        } else {
            self.end_round(&round, lists, mappings);
        }
        ReclaimStep::Batch(shrunk)
    }

    /// Scans at most `look` pages of a round. Returns the results, and whether the round continues.
    #[inline(always)]
    fn scan<L: LruLists>(
        &mut self,
        look: PageCount,
        round: &mut ScanRound,
        lists: &mut L,
        mappings: &ReverseMap,
        log: &mut impl Log,
    ) -> (ShrinkStats, bool) {
        let scan = Scan {
            goal: round.goal.saturating_sub(round.shrunk.evicted),
            max_scan: look.max(PageCount(1)).min(round.left),
            counts_unmapped: false,
        };
        let shrunk = match scan.goal {
            PageCount(0) => ShrinkStats::default(),
            _ => lists.shrink(scan, mappings, log),
        };
        let looked_at = shrunk.evicted + shrunk.kept;
        self.evicted += shrunk.evicted;
        round.left = round.left.saturating_sub(looked_at);
        round.shrunk += shrunk;
        let is_met = round.shrunk.evicted >= round.goal || round.left == PageCount(0);
        (shrunk, !is_met && looked_at > PageCount(0))
    }

    /// Whether the reclaim is finished.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Pages evicted so far.
    pub fn evicted(&self) -> PageCount {
        self.evicted
    }

    fn begin_round(&self, lists: &impl LruLists) -> ScanRound {
        let (inactive, active) = (lists.inactive(), lists.active());
        let goal = if self.ages {
            PageCount(inactive.0 >> self.priority)
        } else {
            self.goal - self.evicted
        };
        ScanRound { goal, inactive, active, left: inactive, shrunk: ShrinkStats::default() }
    }

    /// A pass over both lists evicts a fraction of the inactive list and ages the same fraction of
    /// the active list, then twice as much of both, until at least a batch is evicted. A pass over
    /// the inactive list only is a single round.
    ///
    /// If pages are accessed, more has to be scanned to evict that fraction; the active list is
    /// aged in proportion to the scan. (The kernel scans the fraction regardless of how much it
    /// evicts.)
    fn end_round(&mut self, round: &ScanRound, lists: &mut impl LruLists, mappings: &ReverseMap) {
        self.freed += round.shrunk.evicted;
        if self.ages {
            let (inactive, active) = (round.inactive.0, round.active.0);
            let looked_at = (round.shrunk.evicted + round.shrunk.kept).0;
            let aged = (active >> self.priority).max(looked_at * active / inactive.max(1));
            // The lists take turns, a batch each; ageing stops once a batch is evicted.
            let turns = looked_at.next_multiple_of(BATCH.0);
            let is_enough = self.freed >= BATCH;
            lists.age(PageCount(if is_enough { aged.min(turns) } else { aged }), mappings);
            if !is_enough && self.priority > 0 {
                self.priority -= 1;
                return;
            }
        }
        self.end_pass(lists);
    }

    fn end_pass(&mut self, lists: &impl LruLists) {
        if self.freed > PageCount(0) {
            self.idle_passes = 0;
        } else {
            self.idle_passes += 1;
            if self.idle_passes == 2 && !self.ages && lists.active() > PageCount(0) {
                (self.ages, self.idle_passes) = (true, 0);
            }
        }
        (self.freed, self.priority) = (PageCount(0), FIRST_PRIORITY);
        self.is_done = self.evicted >= self.goal || self.idle_passes == 2;
    }
}

/// Runs a [`MachineReclaim`] without interruption. Returns the number of evicted pages.
// Out of line: inlining costs registers in the callers.
#[inline(never)]
pub fn reclaim<L: LruLists>(
    lists: &mut L,
    goal: PageCount,
    page_size: u64,
    mappings: &ReverseMap,
    log: &mut impl Log,
) -> PageCount {
    let mut reclaim = MachineReclaim::new(goal, lists.flushed_sizes(), page_size);
    while !reclaim.is_done {
        let mut round = reclaim.begin_round(lists);
        while reclaim.scan(PageCount(u64::MAX), &mut round, lists, mappings, log).1 {}
        reclaim.end_round(&round, lists, mappings);
    }
    reclaim.evicted
}

/// Whether the active list has outgrown its share: the inactive list should hold at least
/// `1/(1 + ratio)` of the pages, where the ratio is 1 below one GiB, and then `sqrt(10 * GiB)`.
///
/// Mirrors `inactive_is_low`, 6.12 and 6.18. Test: `tests/reclaim.rs`.
#[inline]
pub fn inactive_is_low(inactive: PageCount, active: PageCount, page_size: u64) -> bool {
    inactive < active
        && inactive.0.saturating_mul(inactive_ratio(inactive + active, page_size)) < active.0
}

/// The target ratio of the lists.
// Out of line: usually the inactive list is longer, and the ratio is not needed.
#[inline(never)]
fn inactive_ratio(pages: PageCount, page_size: u64) -> u64 {
    let gib = pages.bytes(page_size) >> GIB_SHIFT;
    if gib == 0 { 1 } else { (10 * gib).isqrt() }
}
