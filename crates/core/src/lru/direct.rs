//! Direct reclaim of a memory cgroup: what a charge that finds no room does.

use super::lists::{Lists, Scan, Shrunk};
use super::reclaim::{BATCH, FIRST_PRIORITY, inactive_is_low};
use super::statistics::{Refaults, Statistics};
use crate::address::reverse_map::ReverseMap;
use crate::decision::Log;
use crate::rules::Rules;
use crate::units::PageCount;

/// Direct reclaim under way: evicts at least a goal, at least a batch, or what can be.
///
/// [`Direct::step`] is called until it returns `None`. In between the lists are the caller's, who
/// may let other tasks run, let time pass for what was looked at, or give up.
///
/// It looks at one part in `2^12` of the lists, then at twice as much, until it is all or enough is
/// evicted. The lists take turns, a batch each. The active list has its turn only in passes at
/// whose beginning the statistics say that it has outgrown its share, or that refaults have become
/// active since the last reclaim. Where everything was looked at and nothing evicted, it is all
/// done once more, and the active list has its turn whatever they say.
///
/// Mirrors `do_try_to_free_pages`, `prepare_scan_control` and `shrink_lruvec` of the classic lists,
/// 6.12 and 6.18. Test: `tests/direct.rs`.
#[derive(Clone, Debug)]
pub struct Direct {
    goal: PageCount,
    evicted: PageCount,
    page_size: u64,
    counts_unmapped: bool,
    /// Each pass begins with a flush of the statistics.
    flushes: bool,
    /// The active list has turns in the pass under way.
    ages: bool,
    /// It has them whatever the statistics say.
    is_forced: bool,
    /// It did not have a turn that it would have had.
    skipped: bool,
    /// Of the pass under way.
    priority: u32,
    /// Pages of either list that the pass is still to look at.
    inactive: u64,
    active: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A pass begins.
    Pass,
    /// A pass is under way.
    Turns,
    Done,
}

impl Direct {
    /// Nothing evicted yet.
    pub fn new(goal: PageCount, page_size: u64) -> Direct {
        Direct {
            goal: goal.max(BATCH),
            evicted: PageCount(0),
            page_size,
            counts_unmapped: false,
            flushes: false,
            ages: false,
            is_forced: false,
            skipped: false,
            priority: FIRST_PRIORITY,
            inactive: 0,
            active: 0,
            state: State::Pass,
        }
    }

    /// The same by the rules of a kernel.
    ///
    /// Mirrors `prepare_scan_count`, 6.1 and 6.6, whose flush leaves out a few hundred changes at
    /// most. Test: `tests/direct.rs`.
    pub fn by(self, rules: &Rules) -> Direct {
        Direct { flushes: rules.reclaim_flushes_statistics, ..self }
    }

    /// The same. Whether what a step tells has the number of mapped pages.
    pub fn counting_unmapped(self, counts_unmapped: bool) -> Direct {
        Direct { counts_unmapped, ..self }
    }

    /// Both lists have a turn, a batch of each at most. `None`: enough is evicted, or what can be.
    #[inline]
    pub fn step<L: Lists>(
        &mut self,
        lists: &mut L,
        mappings: &ReverseMap,
        log: &mut impl Log,
    ) -> Option<Shrunk> {
        self.begin_turns(lists);
        if self.state == State::Done {
            return None;
        }
        let mut shrunk = Shrunk::default();
        let look = PageCount(self.inactive.min(BATCH.0));
        if look > PageCount(0) {
            self.inactive -= look.0;
            let counts_unmapped = self.counts_unmapped;
            let scan = Scan { goal: PageCount(u64::MAX), look, counts_unmapped };
            shrunk = lists.shrink(scan, mappings, log);
            self.evicted += shrunk.evicted;
        }
        // Turns of the active list that it does not have are all over at once where only they are
        // left.
        let is_over = look == PageCount(0) && !self.ages;
        let aged = PageCount(if is_over { self.active } else { self.active.min(BATCH.0) });
        if aged > PageCount(0) {
            self.active -= aged.0;
            if self.ages { lists.age(aged, mappings) } else { self.skipped = true }
        }
        if self.evicted >= self.goal || self.inactive == 0 && self.active == 0 {
            self.end_pass(lists.refaults());
        }
        Some(shrunk)
    }

    /// The next pass begins that looks at anything, if none is under way.
    fn begin_turns(&mut self, lists: &mut impl Lists) {
        while self.state == State::Pass {
            if self.flushes {
                lists.flush_statistics();
            }
            let Statistics { inactive, active } = lists.statistics();
            self.ages = self.is_forced
                || lists.refaults().are_new()
                || inactive_is_low(inactive, active, self.page_size);
            self.inactive = lists.inactive().0 >> self.priority;
            self.active = lists.active().0 >> self.priority;
            if self.inactive > 0 || self.active > 0 {
                self.state = State::Turns
            } else {
                self.end_pass(lists.refaults())
            }
        }
    }

    fn end_pass(&mut self, refaults: &mut Refaults) {
        self.state = State::Pass;
        if self.evicted < self.goal && self.priority > 0 {
            self.priority -= 1;
        } else if self.evicted == PageCount(0) && self.skipped && !self.is_forced {
            (self.is_forced, self.priority) = (true, FIRST_PRIORITY);
        } else {
            self.state = State::Done;
            refaults.end_reclaim();
        }
    }
}
