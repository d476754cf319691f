//! Direct reclaim of a memory cgroup, run by charges that exceed the limit.

use super::lists::{LruLists, Scan, ShrinkStats};
use super::reclaim::{BATCH, FIRST_PRIORITY, inactive_is_low};
use super::statistics::{ListSizes, Refaults};
use crate::address::reverse_map::ReverseMap;
use crate::decision::Log;
use crate::rules::Rules;
use crate::units::PageCount;

/// A direct reclaim: evicts at least the goal and at least a batch, or as much as possible.
///
/// [`DirectReclaim::step`] is called until it returns `None`. Between steps the caller may let
/// other tasks run, let time pass for the scanned pages, or give up.
///
/// It scans `1/2^12` of the lists, then twice as much, until everything is scanned or enough is
/// evicted. The lists take turns, a batch each. The active list is only included in passes that
/// start with statistics showing that it has outgrown its share, or that refaults were activated
/// since the last reclaim. If everything was scanned and nothing evicted, the whole scan is
/// repeated with the active list included unconditionally.
///
/// Mirrors `do_try_to_free_pages`, `prepare_scan_control` and `shrink_lruvec` of the classic lists,
/// 6.12 and 6.18. Test: `tests/direct.rs`.
#[derive(Clone, Debug)]
pub struct DirectReclaim {
    goal: PageCount,
    evicted: PageCount,
    page_size: u64,
    counts_unmapped: bool,
    /// Each pass begins with a flush of the statistics.
    flushes: bool,
    /// The current pass includes the active list.
    scans_active: bool,
    /// The active list is included unconditionally.
    is_forced: bool,
    /// The active list was left out although it had pages to scan.
    skipped: bool,
    /// Scan priority of the current pass.
    priority: u32,
    /// Pages of either list left to scan in this pass.
    inactive: u64,
    active: u64,
    state: PassState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PassState {
    /// A pass begins.
    Pass,
    /// A pass is under way.
    Turns,
    Done,
}

impl DirectReclaim {
    /// A new reclaim.
    pub fn new(goal: PageCount, page_size: u64) -> DirectReclaim {
        DirectReclaim {
            goal: goal.max(BATCH),
            evicted: PageCount(0),
            page_size,
            counts_unmapped: false,
            flushes: false,
            scans_active: false,
            is_forced: false,
            skipped: false,
            priority: FIRST_PRIORITY,
            inactive: 0,
            active: 0,
            state: PassState::Pass,
        }
    }

    /// Applies the rules of a kernel.
    ///
    /// Mirrors `prepare_scan_count`, 6.1 and 6.6, whose flush leaves out a few hundred changes at
    /// most. Test: `tests/direct.rs`.
    pub fn with_rules(self, rules: &Rules) -> DirectReclaim {
        DirectReclaim { flushes: rules.reclaim_flushes_statistics, ..self }
    }

    /// Sets whether steps count unmapped pages.
    pub fn count_unmapped(self, counts_unmapped: bool) -> DirectReclaim {
        DirectReclaim { counts_unmapped, ..self }
    }

    /// Scans at most a batch of each list. `None`: enough is evicted, or nothing more can be.
    #[inline]
    pub fn step<L: LruLists>(
        &mut self,
        lists: &mut L,
        mappings: &ReverseMap,
        log: &mut impl Log,
    ) -> Option<ShrinkStats> {
        self.begin_turns(lists);
        if self.state == PassState::Done {
            return None;
        }
        let mut shrunk = ShrinkStats::default();
        let look = PageCount(self.inactive.min(BATCH.0));
        if look > PageCount(0) {
            self.inactive -= look.0;
            let counts_unmapped = self.counts_unmapped;
            let scan = Scan { goal: PageCount(u64::MAX), max_scan: look, counts_unmapped };
            shrunk = lists.shrink(scan, mappings, log);
            self.evicted += shrunk.evicted;
        }
        // If the active list is left out, its remaining turns are skipped together.
        let is_over = look == PageCount(0) && !self.scans_active;
        let aged = PageCount(if is_over { self.active } else { self.active.min(BATCH.0) });
        if aged > PageCount(0) {
            self.active -= aged.0;
            if self.scans_active { lists.age(aged, mappings) } else { self.skipped = true }
        }
        if self.evicted >= self.goal || self.inactive == 0 && self.active == 0 {
            self.end_pass(lists.refaults());
        }
        Some(shrunk)
    }

    /// Starts the next pass that scans anything, if none is in progress.
    fn begin_turns(&mut self, lists: &mut impl LruLists) {
        while self.state == PassState::Pass {
            if self.flushes {
                lists.flush_statistics();
            }
            let ListSizes { inactive, active } = lists.flushed_sizes();
            self.scans_active = self.is_forced
                || lists.refaults().are_new()
                || inactive_is_low(inactive, active, self.page_size);
            self.inactive = lists.inactive().0 >> self.priority;
            self.active = lists.active().0 >> self.priority;
            if self.inactive > 0 || self.active > 0 {
                self.state = PassState::Turns
            } else {
                self.end_pass(lists.refaults())
            }
        }
    }

    fn end_pass(&mut self, refaults: &mut Refaults) {
        self.state = PassState::Pass;
        if self.evicted < self.goal && self.priority > 0 {
            self.priority -= 1;
        } else if self.evicted == PageCount(0) && self.skipped && !self.is_forced {
            (self.is_forced, self.priority) = (true, FIRST_PRIORITY);
        } else {
            self.state = PassState::Done;
            refaults.end_reclaim();
        }
    }
}
