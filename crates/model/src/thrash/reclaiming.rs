//! Reclaim by a task: batch by batch, beside those of others.

use filemap_core::decision::Log;
use filemap_core::lru::reclaim::{BATCH, Reclaim, Step};
use filemap_core::page_cache::PageCache;
use filemap_core::units::PageCount;

use super::machine::Machine;
use super::mmap_lock::TaskId;
use super::task::{Flow, ReclaimStage, Reclaiming};
use super::waits::Cause;

/// Most pages that are looked at together where nothing can be evicted: then the time for them is
/// all that matters.
const MOST_LOOKED_AT: u64 = 1 << 14;

impl<C: PageCache, L: Log> Machine<'_, C, L> {
    /// `task` begins to reclaim at least `goal` pages.
    pub fn begin_reclaim(&mut self, task: TaskId, goal: u64, cause: Cause) {
        let known = self.cache.statistics();
        let reclaim = Reclaim::new(PageCount(goal), known, self.job.arch.page_size);
        let stage = ReclaimStage::Begin;
        self.tasks[task].reclaim = Some(Reclaiming { reclaim, stage, look: BATCH.0, cause });
    }

    /// The next part of a batch: the lists' lock, a look at its pages, freeing them.
    pub fn go_on_with_reclaim(&mut self, task: TaskId) -> Flow {
        let mut under_way = self.tasks[task].reclaim.take().expect("it reclaims");
        let cause = under_way.cause;
        let flow = match under_way.stage {
            ReclaimStage::Begin => {
                let is_in_vain = self.locked_pages >= self.cached();
                if under_way.reclaim.is_done() || is_in_vain {
                    self.tasks[task].evicted = Some(under_way.reclaim.evicted().0);
                    // A look at all that is locked takes its time, but needs not be made.
                    let looked = if is_in_vain { self.cached() } else { 0 };
                    let keep_ns = self.job.costs.keep_page_ns;
                    return Flow::Takes(looked * keep_ns, cause);
                }
                under_way.stage = ReclaimStage::Isolated;
                self.take_list_lock(self.job.costs.list_page_ns * under_way.look);
                Flow::Takes(0, cause)
            }
            ReclaimStage::Isolated => {
                let look = PageCount(under_way.look);
                let Machine { cache, mappings, log, .. } = self;
                let step = under_way.reclaim.step(look, cache, mappings, *log);
                let (evicted, kept) = match step {
                    Step::Batch(shrunk) => (shrunk.evicted.0, shrunk.kept.0),
                    Step::Done(_) => (0, 0),
                };
                under_way.look = match evicted {
                    0 => (under_way.look * 2).min(MOST_LOOKED_AT),
                    _ => BATCH.0,
                };
                under_way.stage = ReclaimStage::Freeing(evicted);
                self.freeing_pages += evicted;
                self.counts.evicted_pages += evicted;
                if evicted > 0 {
                    self.charge_kernel();
                }
                let costs = self.job.costs;
                if kept > 0 {
                    self.take_list_lock(costs.list_page_ns * kept);
                }
                Flow::Takes(costs.evict_page_ns * evicted + costs.keep_page_ns * kept, cause)
            }
            ReclaimStage::Freeing(pages) => {
                self.cgroup.uncharge(pages);
                self.freeing_pages -= pages;
                under_way.stage = ReclaimStage::Begin;
                Flow::Goes
            }
        };
        self.tasks[task].reclaim = Some(under_way);
        flow
    }
}
