//! Charging pages: reclaim where they do not fit below `max`, repaying above `high`.

use filemap_core::decision::Log;
use filemap_core::lru::high::RETRIES;
use filemap_core::lru::reclaim::BATCH as RECLAIM_BATCH;
use filemap_core::page_cache::PageCache;

use super::cgroup::{BATCH, Charged};
use super::ending::Ending;
use super::machine::Machine;
use super::task::{Charge, Flow};
use super::waits::Cause;
use crate::mm::mmap_lock::TaskId;

impl Charge {
    /// A charge for `pages` pages.
    pub fn new(pages: u64, gives_up: bool) -> Charge {
        Charge { pages, gives_up, retries: RETRIES, has_drained: false, reclaims: false }
    }
}

impl<C: PageCache, L: Log> Machine<'_, C, L> {
    /// Tries the charge of `task`, and reclaims for it.
    pub fn go_on_with_charge(&mut self, task: TaskId) -> Flow {
        let mut charge = self.tasks[task].charge.take().expect("a charge is under way");
        if charge.reclaims {
            charge.reclaims = false;
            let evicted = self.tasks[task].evicted.take().unwrap_or(0);
            if self.cgroup.margin() >= charge.pages {
                // It is tried again.
            } else if !charge.has_drained {
                charge.has_drained = true;
                self.cgroup.drain();
            } else if charge.gives_up {
                self.tasks[task].charged = Some(false);
                return Flow::Goes;
            } else if evicted == 0 {
                if charge.retries == 0 {
                    self.ending = Some(self.out_of_memory());
                    return Flow::Goes;
                }
                charge.retries -= 1;
            }
        }
        let cpu = self.tasks[task].cpu.expect("who runs has a CPU");
        match self.cgroup.charge(cpu, charge.pages) {
            Charged::Done { owed } => {
                self.charged_pages += charge.pages;
                self.tasks[task].charged = Some(true);
                self.tasks[task].owed += owed;
                if self.tasks[task].owed > BATCH && self.job.mechanisms.repays_inside {
                    self.begin_repaying(task, true);
                }
            }
            Charged::Full => {
                charge.reclaims = true;
                self.begin_reclaim(task, charge.pages.max(RECLAIM_BATCH.0), Cause::Reclaim);
                self.tasks[task].charge = Some(charge);
            }
        }
        Flow::Goes
    }

    fn out_of_memory(&self) -> Ending {
        let cached = self.cached();
        if self.locked_pages >= cached && cached > 0 {
            return Ending::NoProgress { locked: self.locked_pages, windows: self.windows };
        }
        Ending::OutOfMemory { cached, other: self.cgroup.usage().saturating_sub(cached) }
    }
}
