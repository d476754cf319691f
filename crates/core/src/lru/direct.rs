//! Direct reclaim of a memory cgroup: what a charge that finds no room does.

use super::lists::{Lists, Scan};
use super::reclaim::{BATCH, FIRST_PRIORITY, inactive_is_low};
use super::statistics::Statistics;
use crate::address::reverse_map::ReverseMap;
use crate::decision::Log;
use crate::units::PageCount;

/// Evicts at least `goal` pages, at least a batch, or what can be. Returns the pages evicted.
///
/// It looks at one part in `2^12` of the lists, then at twice as much, until it is all or enough is
/// evicted. The lists take turns, a batch each. The active list has its turn only while the
/// statistics say that it has outgrown its share, or that refaults have become active since the
/// last reclaim. Where everything was looked at and nothing
/// evicted, it is all done once more, and the active list has its turn whatever they say.
///
/// Mirrors `do_try_to_free_pages`, `prepare_scan_control` and `shrink_lruvec` of the classic lists,
/// 6.12 and 6.18. Test: `tests/direct.rs`.
pub fn reclaim<L: Lists>(
    lists: &mut L,
    goal: PageCount,
    page_size: u64,
    mappings: &ReverseMap,
    log: &mut impl Log,
) -> PageCount {
    let goal = goal.max(BATCH);
    let Statistics { inactive, active } = lists.statistics();
    let mut ages = lists.refaults().are_new() | inactive_is_low(inactive, active, page_size);
    let mut pass = Pass { goal, evicted: PageCount(0), skipped: false };
    loop {
        for priority in (0..=FIRST_PRIORITY).rev() {
            pass.shrink(priority, ages, lists, mappings, log);
            if pass.evicted >= goal {
                return pass.evicted;
            }
        }
        if pass.evicted > PageCount(0) || !pass.skipped || ages {
            return pass.evicted;
        }
        ages = true;
    }
}

/// What was done so far.
struct Pass {
    goal: PageCount,
    evicted: PageCount,
    /// The active list did not have a turn that it would have had.
    skipped: bool,
}

impl Pass {
    /// Looks at one part in `2^priority` of the lists.
    fn shrink<L: Lists>(
        &mut self,
        priority: u32,
        ages: bool,
        lists: &mut L,
        mappings: &ReverseMap,
        log: &mut impl Log,
    ) {
        let mut inactive = lists.inactive().0 >> priority;
        let mut active = lists.active().0 >> priority;
        while inactive > 0 || active > 0 {
            let look = PageCount(inactive.min(BATCH.0));
            if look > PageCount(0) {
                inactive -= look.0;
                let scan = Scan { goal: PageCount(u64::MAX), look };
                self.evicted += lists.shrink(scan, mappings, log).evicted;
            }
            let aged = PageCount(active.min(BATCH.0));
            if aged > PageCount(0) {
                active -= aged.0;
                match ages {
                    true => lists.age(aged, mappings),
                    false => self.skipped = true,
                }
            }
            if self.evicted >= self.goal {
                break;
            }
        }
    }
}
