//! Reclaim by a task: a batch at a time, beside what other tasks do.

use filemap_core::decision::Log;
use filemap_core::lru::lists::Shrunk;
use filemap_core::page_cache::PageCache;
use filemap_core::units::PageCount;

use super::World;
use crate::memory::Reclaim;
use crate::waiting::Pause;

/// How far a task that reclaims may run ahead of others: a few batches. What lies in memory for
/// less is not missed, and each pause takes the model some time.
const RECLAIM_AHEAD_NS: u64 = 250_000;

/// Reclaim of a task that has paused in it.
#[derive(Debug)]
pub struct Reclaiming {
    reclaim: Reclaim,
    /// What the last batch evicted, which is free when the task goes on.
    freeing: PageCount,
    evicted: PageCount,
}

impl<C: PageCache, L: Log> World<'_, C, L> {
    /// Evicts at least `goal` pages, or what can be. Returns how many. Where the task has to pause
    /// before that is done, it is to be called again.
    pub(super) fn reclaim(&mut self, goal: PageCount) -> Result<PageCount, Pause> {
        let paused = self.reclaims.take(self.task);
        let (mut reclaim, mut evicted) = match paused {
            None => (self.memory.begin_reclaim(goal, self.counts_unmapped()), PageCount(0)),
            Some(Reclaiming { reclaim, freeing, evicted }) => {
                self.memory.free(freeing);
                (reclaim, evicted)
            }
        };
        while let Some(shrunk) = self.memory.reclaim_on(&mut reclaim, &mut self.log) {
            evicted += shrunk.evicted;
            self.tally.evicted_pages += shrunk.evicted.0;
            let took_ns = self.pass_reclaim(&shrunk);
            let pause = match () {
                () if self.profile.cpus_in_turn && shrunk.unmapped.0 > 0 => Pause::Answers,
                () if took_ns > 0 && self.is_ahead_by(RECLAIM_AHEAD_NS) => Pause::Turn,
                () => {
                    if took_ns > 0 {
                        self.arrivals();
                    }
                    continue;
                }
            };
            let freeing = shrunk.evicted;
            self.memory.free_later(freeing);
            self.reclaims.insert(self.task, Reclaiming { reclaim, freeing, evicted });
            return Err(pause);
        }
        Ok(evicted)
    }

    /// The task at work needs no room any more, and gives up the reclaim that it has paused in.
    pub(super) fn end_reclaim(&mut self) {
        if let Some(Reclaiming { freeing, .. }) = self.reclaims.take(self.task) {
            self.memory.free(freeing);
        }
    }

    fn counts_unmapped(&self) -> bool {
        self.profile.cpus_in_turn || self.profile.cost.unmap_page_ns > 0
    }

    /// Lets the time for what reclaim did pass. Returns how long that is.
    fn pass_reclaim(&mut self, shrunk: &Shrunk) -> u64 {
        let cost = &self.profile.cost;
        let each = [
            (cost.evict_page_ns, shrunk.evicted),
            (cost.unmap_page_ns, shrunk.unmapped),
            (cost.keep_page_ns, shrunk.kept - shrunk.locked),
            (cost.keep_locked_ns, shrunk.locked),
        ];
        let took_ns = each.into_iter().map(|(ns, pages)| ns.saturating_mul(pages.0));
        let took_ns = took_ns.fold(0, u64::saturating_add);
        self.pass(took_ns);
        self.reclaimed_ns = self.reclaimed_ns.saturating_add(took_ns);
        took_ns
    }
}
