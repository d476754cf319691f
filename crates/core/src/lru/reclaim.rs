//! Reclaim over two lists, batch by batch.

use super::lists::{Lists, Scan, Shrunk};
use super::statistics::Statistics;
use crate::address::reverse_map::ReverseMap;
use crate::decision::Log;
use crate::units::PageCount;

pub use super::judge::{
    Referenced, Used, UsedPages, Verdict, Verdicts, judge_folio, judge_pages, used, used_pages,
};

/// Pages looked at together (`SWAP_CLUSTER_MAX`): goals are whole batches.
pub const BATCH: PageCount = PageCount(32);

/// Both lists are first gone through by one part in `2^12`, then by twice as much, until it is all
/// (`DEF_PRIORITY`).
pub(super) const FIRST_PRIORITY: u32 = 12;

/// Base pages in one GiB of 4 KiB pages are 2^18; the ratio grows with the lists' bytes.
const GIB_SHIFT: u32 = 30;

/// Reclaim under way: evicts at least a goal, rounded up to whole batches, or what can be.
///
/// [`Reclaim::step`] is called until it returns [`Step::Done`]. In between the lists are the
/// caller's, who may let other tasks run, let time pass for what was looked at, or give up:
/// [`Reclaim::evicted`] says what was evicted by then.
///
/// The active list is aged along with the inactive one while the statistics say that it has
/// outgrown its share, and where nothing can be evicted otherwise.
///
/// Mirrors `do_try_to_free_pages` and `shrink_lruvec` of the classic lists, 6.12 and 6.18. Test:
/// `tests/aging.rs`.
#[derive(Debug)]
pub struct Reclaim {
    goal: PageCount,
    evicted: PageCount,
    /// Passes go over both lists.
    ages: bool,
    /// The last passes, which evicted nothing.
    idle_passes: u32,
    /// What the pass under way evicted in the rounds that it made.
    freed: PageCount,
    /// Of the next round of a pass over both lists.
    priority: u32,
    round: Option<Round>,
    is_done: bool,
}

/// What a step of reclaim did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It looked at a part of the lists, and there may be more to be done.
    Batch(Shrunk),
    /// It did nothing: so many pages were evicted in all, and that is enough or what could be.
    Done(PageCount),
}

/// One way along the inactive list's tail, and what goes with it.
#[derive(Debug)]
struct Round {
    /// Pages to evict.
    goal: PageCount,
    /// Pages on the lists when it began.
    inactive: PageCount,
    active: PageCount,
    /// Of the inactive ones those that it has not looked at: none is looked at twice.
    left: PageCount,
    /// What it did so far.
    shrunk: Shrunk,
}

impl Reclaim {
    /// Nothing evicted yet; the statistics as `known`.
    #[inline]
    pub fn new(goal: PageCount, known: Statistics, page_size: u64) -> Reclaim {
        let goal = PageCount(goal.0.next_multiple_of(BATCH.0));
        Reclaim {
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

    /// Looks at `look` pages at most, rounded up to whole folios, at least one; ages the active
    /// list where a round over both lists is complete.
    #[inline]
    pub fn step<L: Lists>(
        &mut self,
        look: PageCount,
        lists: &mut L,
        mappings: &ReverseMap,
        log: &mut impl Log,
    ) -> Step {
        if self.is_done {
            return Step::Done(self.evicted);
        }
        let mut round = match self.round.take() {
            Some(round) => round,
            None => self.begin_round(lists),
        };
        let (shrunk, goes_on) = self.look(look, &mut round, lists, mappings, log);
        if goes_on {
            self.round = Some(round);
        } else {
            self.end_round(&round, lists, mappings);
        }
        Step::Batch(shrunk)
    }

    /// Looks at `look` pages at most in a round. Returns what that did, and whether it goes on.
    #[inline(always)]
    fn look<L: Lists>(
        &mut self,
        look: PageCount,
        round: &mut Round,
        lists: &mut L,
        mappings: &ReverseMap,
        log: &mut impl Log,
    ) -> (Shrunk, bool) {
        let scan = Scan {
            goal: round.goal.saturating_sub(round.shrunk.evicted),
            look: look.max(PageCount(1)).min(round.left),
            counts_unmapped: false,
        };
        let shrunk = match scan.goal {
            PageCount(0) => Shrunk::default(),
            _ => lists.shrink(scan, mappings, log),
        };
        let looked_at = shrunk.evicted + shrunk.kept;
        self.evicted += shrunk.evicted;
        round.left = round.left.saturating_sub(looked_at);
        round.shrunk += shrunk;
        let is_met = round.shrunk.evicted >= round.goal || round.left == PageCount(0);
        (shrunk, !is_met && looked_at > PageCount(0))
    }

    /// Whether the next step does nothing.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Pages evicted so far.
    pub fn evicted(&self) -> PageCount {
        self.evicted
    }

    fn begin_round(&self, lists: &impl Lists) -> Round {
        let (inactive, active) = (lists.inactive(), lists.active());
        let goal = if self.ages {
            PageCount(inactive.0 >> self.priority)
        } else {
            self.goal - self.evicted
        };
        Round { goal, inactive, active, left: inactive, shrunk: Shrunk::default() }
    }

    /// A pass over both lists evicts a part of the inactive list and ages the same part of the
    /// active one, and then twice as much of both, until at least a batch is evicted. One over the
    /// inactive list is one round.
    ///
    /// Where pages are accessed, more has to be looked at to evict that part; the active list is
    /// aged in proportion to what was. (The kernel looks at the part, whatever it evicts of it.)
    fn end_round(&mut self, round: &Round, lists: &mut impl Lists, mappings: &ReverseMap) {
        self.freed += round.shrunk.evicted;
        if self.ages {
            let (inactive, active) = (round.inactive.0, round.active.0);
            let looked_at = (round.shrunk.evicted + round.shrunk.kept).0;
            let aged = (active >> self.priority).max(looked_at * active / inactive.max(1));
            // The lists take turns, a batch each; of the active one no more once a batch is
            // evicted.
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

    fn end_pass(&mut self, lists: &impl Lists) {
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

/// A [`Reclaim`] that nothing interrupts. Returns the number of pages evicted.
// Within its callers it would have too few registers.
#[inline(never)]
pub fn reclaim<L: Lists>(
    lists: &mut L,
    goal: PageCount,
    page_size: u64,
    mappings: &ReverseMap,
    log: &mut impl Log,
) -> PageCount {
    let mut reclaim = Reclaim::new(goal, lists.statistics(), page_size);
    while !reclaim.is_done {
        let mut round = reclaim.begin_round(lists);
        while reclaim.look(PageCount(u64::MAX), &mut round, lists, mappings, log).1 {}
        reclaim.end_round(&round, lists, mappings);
    }
    reclaim.evicted
}

/// Whether the active list has outgrown its share: the inactive list should hold at least one
/// part in `1 + ratio`, where the ratio is 1 below one GiB and then the root of ten times the GiB.
///
/// Mirrors `inactive_is_low`, 6.12 and 6.18. Test: `tests/reclaim.rs`.
#[inline]
pub fn inactive_is_low(inactive: PageCount, active: PageCount, page_size: u64) -> bool {
    inactive < active
        && inactive.0.saturating_mul(inactive_ratio(inactive + active, page_size)) < active.0
}

/// The ratio of both lists together.
// Most often the inactive list is the longer one, and nobody asks.
#[inline(never)]
fn inactive_ratio(pages: PageCount, page_size: u64) -> u64 {
    let gib = pages.bytes(page_size) >> GIB_SHIFT;
    if gib == 0 { 1 } else { (10 * gib).isqrt() }
}
