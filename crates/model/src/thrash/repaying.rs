//! Repaying what was charged above `memory.high`.

use filemap_core::decision::Log;
use filemap_core::lru::high::{LEAST_DELAY_NS, RETRIES};
use filemap_core::lru::reclaim::BATCH;
use filemap_core::page_cache::PageCache;

use super::machine::Machine;
use super::task::{Flow, Repay};
use super::waits::Cause;
use crate::mm::mmap_lock::TaskId;

impl<C: PageCache, L: Log> Machine<'_, C, L> {
    /// `task` goes back to user mode: it repays what it owes, holding nothing.
    pub fn return_to_user(&mut self, task: TaskId) {
        if self.tasks[task].owed > 0 {
            self.begin_repaying(task, false);
        }
    }

    /// `task` begins to repay, inside of a charge or on its way back.
    pub fn begin_repaying(&mut self, task: TaskId, is_inside: bool) {
        let pages = std::mem::take(&mut self.tasks[task].owed);
        let (is_again, reclaims) = (false, false);
        let repay = Repay { pages, retries: RETRIES, is_again, is_inside, reclaims };
        self.tasks[task].repay = Some(repay);
    }

    /// Reclaims while that makes progress and the task would have to sleep; then it sleeps.
    ///
    /// As `mem_cgroup_handle_over_high`, 6.12 and 6.18.
    pub fn go_on_with_repaying(&mut self, task: TaskId) -> Flow {
        let mut repay = self.tasks[task].repay.take().expect("it repays");
        if !repay.reclaims && self.cgroup.is_over_high() {
            let goal = if repay.is_again { BATCH.0 } else { repay.pages.max(BATCH.0) };
            let cause = if repay.is_inside { Cause::RepayInside } else { Cause::RepayOnReturn };
            repay.reclaims = true;
            self.tasks[task].repay = Some(repay);
            self.begin_reclaim(task, goal, cause);
            return Flow::Goes;
        }
        repay.reclaims = false;
        let evicted = self.tasks[task].evicted.take().unwrap_or(0);
        let delay_ns = self.cgroup.delay_ns(repay.pages);
        if delay_ns <= LEAST_DELAY_NS {
            return Flow::Goes;
        }
        if evicted > 0 || repay.retries > 0 {
            repay.retries -= u32::from(evicted == 0);
            repay.is_again = true;
            self.tasks[task].repay = Some(repay);
            return Flow::Goes;
        }
        if !self.job.mechanisms.sleeps {
            return Flow::Goes;
        }
        self.counts.throttled += 1;
        Flow::Sleeps(delay_ns, Cause::Throttled)
    }
}
