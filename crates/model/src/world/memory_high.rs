//! Throttling above `memory.high`: tasks reclaim what they charged in excess, or sleep.

use filemap_core::address::page_table::PageTables;
use filemap_core::lru::high::{CHARGE_BATCH, MAX_RETRIES, MIN_DELAY_NS};
use filemap_core::lru::reclaim::BATCH;
use filemap_core::page_cache::PageCache;
use filemap_core::units::PageCount;

use super::World;
use crate::wait_queue::Pause;

/// The debt of a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct HighDebt {
    /// Pages charged in excess since it last repaid, in whole batches (`memcg_nr_pages_over_high`).
    owed: PageCount,
    /// Unused pages of the last batch (`memcg_stock`).
    stock: PageCount,
    repay: Option<Repayment>,
}

/// A repayment in progress.
#[derive(Clone, Copy, Debug)]
struct Repayment {
    pages: PageCount,
    retries: u32,
    stage: RepayStage,
}

#[derive(Clone, Copy, Debug)]
enum RepayStage {
    /// Reclaim this many pages.
    Reclaim(PageCount),
    /// Continue the reclaim.
    Resume,
    /// It has slept.
    Slept,
}

impl<C: PageCache> World<'_, C> {
    /// Whether the running task has a debt.
    #[inline(always)]
    pub fn has_debt(&self) -> bool {
        self.debts.get(self.task).is_some_and(|debt| debt.owed.0 > 0 || debt.repay.is_some())
    }

    /// Whether it has to repay within the charge.
    #[inline(always)]
    pub(super) fn must_repay(&self) -> bool {
        let owes = |debt: &HighDebt| debt.owed > CHARGE_BATCH || debt.repay.is_some();
        self.debts.get(self.task).is_some_and(owes)
    }

    /// Records that the running task charged `pages` pages.
    pub(super) fn record_charge(&mut self, pages: PageCount, tables: &PageTables) {
        if self.memory.high().is_none() {
            return;
        }
        if self.debts.len() <= self.task {
            self.debts.resize(self.task + 1, HighDebt::default());
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

    /// Reclaims the debt of the running task as long as that makes progress and a sleep would be
    /// due; then sleeps. If it has to pause, it is to be called again.
    ///
    /// Mirrors `mem_cgroup_handle_over_high`, 6.12 and 6.18. Test: `tests/memory_high.rs`.
    pub fn repay(&mut self, tables: &PageTables) -> Option<Pause> {
        loop {
            let debt = &mut self.debts[self.task];
            let owed = std::mem::take(&mut debt.owed);
            let first = RepayStage::Reclaim(owed.max(BATCH));
            let mut repay = debt.repay.take().unwrap_or(Repayment {
                pages: owed,
                retries: MAX_RETRIES,
                stage: first,
            });
            let goal = match repay.stage {
                RepayStage::Slept => return None,
                RepayStage::Reclaim(_) if !self.memory.is_over_high(tables) => return None,
                RepayStage::Reclaim(goal) => {
                    self.memory.flush_if_due(self.now_ns, self.begun);
                    goal
                }
                RepayStage::Resume => BATCH,
            };
            let evicted = match self.reclaim(goal) {
                Ok(evicted) => evicted,
                Err(pause) => {
                    repay.stage = RepayStage::Resume;
                    self.debts[self.task].repay = Some(repay);
                    return Some(pause);
                }
            };
            let delay_ns = self.memory.delay_ns(repay.pages, tables);
            if delay_ns <= MIN_DELAY_NS {
                return None;
            }
            let is_vain = evicted == PageCount(0);
            let sleeps = is_vain && repay.retries == 0;
            repay.retries -= u32::from(is_vain && !sleeps);
            repay.stage = if sleeps { RepayStage::Slept } else { RepayStage::Reclaim(BATCH) };
            self.debts[self.task].repay = Some(repay);
            if sleeps {
                self.tally.throttled += 1;
                return Some(Pause::Throttled(self.now_ns.saturating_add(delay_ns)));
            }
        }
    }
}
