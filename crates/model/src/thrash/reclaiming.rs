//! Reclaim by a task: batch by batch, beside those of others.

use filemap_core::decision::Log;
use filemap_core::lru::direct::Direct;
use filemap_core::lru::reclaim::BATCH;
use filemap_core::page_cache::PageCache;
use filemap_core::units::PageCount;

use super::list_lock::turn_ns;
use super::machine::Machine;
use super::task::{Flow, Reclaiming};
use super::waits::Cause;
use crate::mm::mmap_lock::TaskId;

/// Most pages that are looked at together where nothing can be evicted: then the time for them is
/// all that matters.
const MOST_LOOKED_AT: PageCount = PageCount(256);

impl<C: PageCache, L: Log> Machine<'_, C, L> {
    /// `task` begins to reclaim at least `goal` pages.
    pub fn begin_reclaim(&mut self, task: TaskId, goal: u64, cause: Cause) {
        let reclaim = Direct::new(PageCount(goal), self.job.arch.page_size)
            .by(&self.job.rules)
            .counting_unmapped();
        let (tells, freeing) = (false, 0);
        self.tasks[task].reclaim = Some(Reclaiming { reclaim, tells, freeing, cause });
        self.reclaimers += 1;
    }

    /// The next batch: its pages are isolated, and freed or put back.
    pub fn go_on_with_reclaim(&mut self, task: TaskId) -> Flow {
        let mut under_way = self.tasks[task].reclaim.take().expect("it reclaims");
        let cause = under_way.cause;
        self.cgroup.uncharge(under_way.freeing);
        self.freeing_pages -= under_way.freeing;
        under_way.freeing = 0;
        if std::mem::take(&mut under_way.tells) {
            self.tasks[task].reclaim = Some(under_way);
            return Flow::Tells(cause);
        }
        let is_in_vain = self.locked_pages >= self.cached();
        if under_way.reclaim.is_done() || is_in_vain {
            self.tasks[task].evicted = Some(under_way.reclaim.evicted().0);
            self.reclaimers -= 1;
            // A look at all that is locked takes its time, but needs not be made.
            let looked = if is_in_vain { self.cached() } else { 0 };
            return self.listed(looked, 2, looked * self.job.costs.keep_locked_ns, cause);
        }
        let Machine { cache, mappings, log, .. } = self;
        // CPUs that run in turn may change at each batch.
        let most = if self.job.costs.in_turn { PageCount(1) } else { MOST_LOOKED_AT };
        let shrunk = under_way.reclaim.look(most, cache, mappings, *log);
        let (evicted, kept) = (shrunk.evicted.0, shrunk.kept.0);
        let is_told = self.job.costs.in_turn || self.job.costs.answer_ns > 0;
        under_way.tells = is_told && shrunk.unmapped > PageCount(0);
        under_way.freeing = evicted;
        self.freeing_pages += evicted;
        self.counts.evicted_pages += evicted;
        if evicted > 0 {
            self.charge_kernel();
        }
        self.tasks[task].reclaim = Some(under_way);
        let costs = self.job.costs;
        let other_ns = costs.evict_page_ns * evicted
            + costs.unmap_page_ns * shrunk.unmapped.0
            + costs.keep_page_ns * (kept - shrunk.locked.0)
            + costs.keep_locked_ns * shrunk.locked.0;
        self.listed(evicted + 2 * kept, 1, other_ns, cause)
    }

    /// The time for `pages` pages that are moved `times` times under the lists' lock, and for
    /// `other_ns` of work without it.
    pub fn listed(&mut self, pages: u64, times: u64, other_ns: u64, cause: Cause) -> Flow {
        let costs = &self.job.costs;
        let hold_ns = costs.list_page_ns * pages * times;
        let alone_ns = hold_ns + other_ns;
        let is_shared = self.job.mechanisms.list_lock && !costs.in_turn;
        let users = if is_shared { self.reclaimers + 1 } else { 1 };
        let handover_ns = costs.handover_ns * (pages * times).div_ceil(BATCH.0);
        let turn_ns = turn_ns(users, hold_ns, handover_ns, other_ns);
        self.spun_ns += turn_ns - alone_ns;
        Flow::Takes(alone_ns, cause)
    }
}
