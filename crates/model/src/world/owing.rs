//! What tasks have charged above `memory.high`, and repay.

use filemap_core::address::page_table::PageTables;
use filemap_core::decision::Log;
use filemap_core::lru::high::{CHARGE_BATCH, LEAST_DELAY_NS, RETRIES};
use filemap_core::lru::reclaim::BATCH;
use filemap_core::page_cache::PageCache;
use filemap_core::units::PageCount;

use super::World;
use crate::waiting::Pause;

/// What a task owes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Debt {
    /// Pages that it has charged since it repaid: whole batches.
    owed: PageCount,
    /// Pages of the last batch that it has not used.
    stock: PageCount,
    repay: Option<Repay>,
}

/// Repaying under way.
#[derive(Clone, Copy, Debug)]
struct Repay {
    pages: PageCount,
    retries: u32,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// It is to reclaim so many pages.
    Begins(PageCount),
    /// It reclaims.
    Reclaims,
    /// It has slept.
    Slept,
}

impl<C: PageCache, L: Log> World<'_, C, L> {
    /// Whether the task at work owes anything.
    #[inline(always)]
    pub fn owes(&self) -> bool {
        self.debts.get(self.task).is_some_and(|debt| debt.owed.0 > 0 || debt.repay.is_some())
    }

    /// Whether it has to repay before its charge is done.
    #[inline(always)]
    pub(super) fn must_repay(&self) -> bool {
        let owes = |debt: &Debt| debt.owed > CHARGE_BATCH || debt.repay.is_some();
        self.debts.get(self.task).is_some_and(owes)
    }

    /// The task at work has charged `pages` pages.
    pub(super) fn charged(&mut self, pages: PageCount, tables: &PageTables) {
        if self.memory.high().is_none() {
            return;
        }
        if self.debts.len() <= self.task {
            self.debts.resize(self.task + 1, Debt::default());
        }
        let stock = &mut self.debts[self.task].stock;
        if pages <= *stock {
            *stock -= pages;
            return;
        }
        let batch = pages.max(CHARGE_BATCH);
        *stock = batch - pages;
        if self.memory.is_over_high(tables) {
            self.debts[self.task].owed += batch;
        }
    }

    /// Reclaims what the task at work owes while that makes progress and it would have to sleep;
    /// then it sleeps. Where it has to pause, it is to be called again.
    ///
    /// As `mem_cgroup_handle_over_high`, 6.12 and 6.18. Test: `tests/memory_high.rs`.
    pub fn repay(&mut self, tables: &PageTables) -> Option<Pause> {
        loop {
            let debt = &mut self.debts[self.task];
            let owed = std::mem::take(&mut debt.owed);
            let first = Stage::Begins(owed.max(BATCH));
            let mut repay =
                debt.repay.take().unwrap_or(Repay { pages: owed, retries: RETRIES, stage: first });
            let goal = match repay.stage {
                Stage::Slept => return None,
                Stage::Begins(_) if !self.memory.is_over_high(tables) => return None,
                Stage::Begins(goal) => {
                    self.memory.flush_if_due(self.now_ns, self.begun);
                    goal
                }
                Stage::Reclaims => BATCH,
            };
            let evicted = match self.reclaim(goal) {
                Ok(evicted) => evicted,
                Err(pause) => {
                    repay.stage = Stage::Reclaims;
                    self.debts[self.task].repay = Some(repay);
                    return Some(pause);
                }
            };
            let delay_ns = self.memory.delay_ns(repay.pages, tables);
            if delay_ns <= LEAST_DELAY_NS {
                return None;
            }
            let is_vain = evicted == PageCount(0);
            let sleeps = is_vain && repay.retries == 0;
            repay.retries -= u32::from(is_vain && !sleeps);
            repay.stage = if sleeps { Stage::Slept } else { Stage::Begins(BATCH) };
            self.debts[self.task].repay = Some(repay);
            if sleeps {
                self.tally.throttled += 1;
                return Some(Pause::Throttled(self.now_ns.saturating_add(delay_ns)));
            }
        }
    }
}
