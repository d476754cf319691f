//! Faults: what their steps ask for, carried out in time.

use filemap_core::address::entries::Layer;
use filemap_core::cache::{FileCache, FolioRun};
use filemap_core::decision::{Lock, Log};
use filemap_core::fault::{Outcome, Step, View};
use filemap_core::page_cache::PageCache;
use filemap_core::units::{Order, PageCount, PageIndex};

use super::machine::Machine;
use super::round::file;
use super::task::{Charge, FaultUnderWay, Flow};
use super::waits::Cause;
use crate::mm::mmap_lock::TaskId;

impl<C: PageCache, L: Log> Machine<'_, C, L> {
    /// The next step of the fault of `task`, or what is left of the last one.
    pub fn go_on_with_fault(&mut self, task: TaskId) -> Flow {
        let asked = match self.fault(task).asked.take() {
            Some(asked) => asked,
            None => self.step(task),
        };
        match asked {
            Step::Lock(lock) => self.lock(task, lock),
            Step::Unlock => {
                self.unlock(task);
                self.counts.lock_drops += 1;
                let under_way = self.fault(task);
                under_way.begins_again = true;
                if !under_way.has_dropped {
                    under_way.has_dropped = true;
                    self.counts.faults_dropped += 1;
                }
                Flow::Goes
            }
            Step::Read => {
                let window = *self.fault(task).fault.window();
                self.begin_window(task, window);
                Flow::Goes
            }
            Step::ReadPage(index) => self.read_page(task, index),
            Step::Wait(index) => self.wait(task, index),
            Step::Done(outcome) => self.served(task, outcome),
        }
    }

    /// What `task` has under way.
    fn fault(&mut self, task: TaskId) -> &mut FaultUnderWay {
        self.tasks[task].fault.as_mut().expect("a fault is under way")
    }

    fn step(&mut self, task: TaskId) -> Step {
        let vma = self.vma(task);
        let tables_before = self.tables.pages();
        let open = &mut self.opens[task];
        let under_way = self.tasks[task].fault.as_mut().expect("a fault is under way");
        self.log.about(file(task));
        let step = under_way.fault.step(&mut View {
            limits: &open.limits,
            vma: &vma,
            ra: &mut open.ra,
            tables: &mut self.tables,
            cache: &mut self.cache.mapped(file(task), Layer::FIRST),
            log: self.log,
        });
        if self.tables.pages() != tables_before {
            self.charge_kernel();
        }
        step
    }

    fn lock(&mut self, task: TaskId, lock: Lock) -> Flow {
        let cost_ns = self.job.costs.fault_ns;
        let vma = self.locked_vma(task);
        if self.fault(task).held.is_none() {
            let begins_again = std::mem::take(&mut self.fault(task).begins_again);
            self.counts.retries += u64::from(begins_again);
            match lock {
                Lock::Vma if self.vma_locks.read(vma) => {}
                Lock::Vma => {
                    self.counts.refused += 1;
                    self.fault(task).fault.refused();
                    return Flow::Goes;
                }
                Lock::Mmap => {
                    let mut woken = std::mem::take(&mut self.woken);
                    let has = self.mmap_lock.read(task, self.now_ns, &mut woken);
                    self.woken = woken;
                    self.wake_woken();
                    if !has {
                        self.fault(task).asked = Some(Step::Lock(lock));
                        return Flow::Waits(self.behind());
                    }
                }
            }
            self.fault(task).held = Some(lock);
        }
        // Not all faults take the same time.
        let jitter_ns = self.draw() % (cost_ns / 4).max(1);
        Flow::Takes(cost_ns + jitter_ns, Cause::Work)
    }

    /// What a reader of `mmap_lock` waits for that has to wait.
    pub fn behind(&self) -> Cause {
        if self.mmap_lock.writer().is_some() {
            Cause::BehindWriter
        } else if self.windows_under_lock > 0 {
            Cause::BehindWindow
        } else {
            Cause::BehindReaders
        }
    }

    fn unlock(&mut self, task: TaskId) {
        let vma = self.locked_vma(task);
        match self.fault(task).held.take().expect("the fault has a lock") {
            Lock::Vma => {
                if self.vma_locks.release(vma)
                    && let Some(writer) = self.vma_writer.take()
                {
                    self.extra_ns += self.job.costs.wake_ns;
                    self.wake_at(self.now_ns + self.extra_ns, writer);
                }
            }
            Lock::Mmap => {
                self.mmap_lock.release_read(&mut self.woken);
                self.wake_woken();
            }
        }
    }

    /// Adds a page by itself: its charge does not give up.
    fn read_page(&mut self, task: TaskId, start: PageIndex) -> Flow {
        if self.tasks[task].charged.take().is_none() {
            self.tasks[task].charge = Some(Charge::new(1, false));
            self.fault(task).asked = Some(Step::ReadPage(start));
            return Flow::Goes;
        }
        let run = FolioRun { start, order: Order(0), folios: 1, marked: None };
        self.charged_pages -= 1;
        self.add(task, run);
        if !self.job.sparse {
            self.submit(task, run);
        }
        self.listed(1, 1, self.job.costs.add_page_ns, Cause::Fill)
    }

    fn wait(&mut self, task: TaskId, index: PageIndex) -> Flow {
        if let Some((start, pages)) = self.tasks[task].refers.take() {
            self.unlock_pages(task, start, pages);
            return Flow::Goes;
        }
        let folio = self.cache.file(file(task)).folio(index);
        let Some(folio) = folio.filter(|folio| folio.locked) else { return Flow::Goes };
        let is_sparse = self.job.sparse;
        let under_way = self.fault(task);
        if !is_sparse {
            under_way.asked = Some(Step::Wait(index));
            self.tasks[task].awaits = Some(index);
            return Flow::Waits(Cause::Device);
        }
        // Only a page that was added by itself is still locked: nobody waits for a hole.
        if !under_way.is_paid {
            under_way.is_paid = true;
            under_way.asked = Some(Step::Wait(index));
            return Flow::Takes(self.job.costs.zero_page_ns, Cause::Fill);
        }
        under_way.is_paid = false;
        self.unlock_pages(task, folio.head, PageCount(folio.order.pages()));
        Flow::Goes
    }

    fn served(&mut self, task: TaskId, outcome: Outcome) -> Flow {
        let map_ns = self.job.costs.map_page_ns;
        let under_way = self.fault(task);
        if !under_way.is_paid {
            under_way.is_paid = true;
            under_way.asked = Some(Step::Done(outcome));
            let pages = under_way.fault.mapped().0.max(1);
            return Flow::Takes(map_ns * pages, Cause::Work);
        }
        self.unlock(task);
        let under_way = self.tasks[task].fault.take().expect("a fault is under way");
        self.counts.faults += 1;
        self.counts.major_faults += u64::from(under_way.fault.misses());
        self.counts.retry_misses += u64::from(under_way.fault.retry_misses());
        self.return_to_user(task);
        Flow::Goes
    }
}
