//! Reclaim by a task, one batch at a time, interleaved with other tasks.

use filemap_core::lru::lists::ShrinkStats;
use filemap_core::page_cache::PageCache;
use filemap_core::units::PageCount;

use super::World;
use crate::memory::ReclaimProgress;
use crate::wait_queue::Pause;

/// How far a reclaiming task may run ahead of others: a few batches. Holding memory slightly longer
/// does no harm, and each pause costs the model time.
const MAX_RECLAIM_AHEAD_NS: u64 = 250_000;

/// The reclaim of a paused task.
#[derive(Debug)]
pub struct PausedReclaim {
    reclaim: ReclaimProgress,
    /// Pages evicted by the last batch; they are free once the task runs again.
    freeing: PageCount,
    evicted: PageCount,
}

impl<C: PageCache> World<'_, C> {
    /// Evicts at least `goal` pages, or as many as possible. Returns the number. If the task has to
    /// pause, it is to be called again.
    pub(super) fn reclaim(&mut self, goal: PageCount) -> Result<PageCount, Pause> {
        let paused = self.reclaims.take(self.task);
        let (mut reclaim, mut evicted) = match paused {
            None => (self.memory.begin_reclaim(goal, self.counts_unmapped()), PageCount(0)),
            Some(PausedReclaim { reclaim, freeing, evicted }) => {
                self.memory.free(freeing);
                (reclaim, evicted)
            }
        };
        while let Some(shrunk) = self.memory.reclaim_batch(&mut reclaim, &mut self.log) {
            evicted += shrunk.evicted;
            self.tally.evicted_pages += shrunk.evicted.0;
            let took_ns = self.pass_reclaim(&shrunk);
            let pause = match () {
                () if self.profile.cpus_in_turn && shrunk.unmapped.0 > 0 => Pause::TlbShootdown,
                () if took_ns > 0 && self.is_ahead_by(MAX_RECLAIM_AHEAD_NS) => Pause::Yield,
                () => {
                    if took_ns > 0 {
                        self.process_completions();
                    }
                    continue;
                }
            };
            let freeing = shrunk.evicted;
            self.memory.defer_free(freeing);
            self.reclaims.insert(self.task, PausedReclaim { reclaim, freeing, evicted });
            return Err(pause);
        }
        Ok(evicted)
    }

    /// Abandons the paused reclaim of the running task, which needs no memory any more.
    pub(super) fn end_reclaim(&mut self) {
        if let Some(PausedReclaim { freeing, .. }) = self.reclaims.take(self.task) {
            self.memory.free(freeing);
        }
    }

    fn counts_unmapped(&self) -> bool {
        self.profile.cpus_in_turn || self.profile.cost.unmap_page_ns > 0
    }

    /// Advances the clock by the cost of a reclaim batch. Returns that time.
    fn pass_reclaim(&mut self, shrunk: &ShrinkStats) -> u64 {
        let cost = &self.profile.cost;
        let each = [
            (cost.evict_page_ns, shrunk.evicted),
            (cost.unmap_page_ns, shrunk.unmapped),
            (cost.keep_page_ns, shrunk.kept - shrunk.locked),
            (cost.keep_locked_ns, shrunk.locked),
        ];
        let took_ns = each.into_iter().map(|(ns, pages)| ns.saturating_mul(pages.0));
        let took_ns = took_ns.fold(0, u64::saturating_add);
        self.advance(took_ns);
        self.reclaimed_ns = self.reclaimed_ns.saturating_add(took_ns);
        took_ns
    }
}
