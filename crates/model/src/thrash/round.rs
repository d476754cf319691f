//! The rounds of readers and writers.

use filemap_core::address::entries::{Layer, MappedFile};
use filemap_core::address::mapping::Mapping;
use filemap_core::address::vma::{Advice, Vma};
use filemap_core::cache::by_word;
use filemap_core::decision::Log;
use filemap_core::fault::{Access, Fault, map};
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageIndex, Vpn};

use super::ending::Ending;
use super::job::Until;
use super::machine::Machine;
use super::task::{FaultUnderWay, Flow, Stage};
use super::waits::Cause;
use crate::mm::mmap_lock::TaskId;

impl<C: PageCache, L: Log> Machine<'_, C, L> {
    /// A reader maps its file, touches its pages, and unmaps it.
    pub fn go_on_with_round(&mut self, task: TaskId) -> Flow {
        match self.tasks[task].stage {
            Stage::Begin | Stage::Again => self.write_lock(task),
            Stage::Has if self.tasks[task].is_unmapped => {
                self.tasks[task].stage = Stage::Release;
                Flow::Takes(self.job.costs.map_ns, Cause::Work)
            }
            Stage::Has => self.mark_vma(task),
            Stage::Marked => {
                self.tasks[task].stage = Stage::Release;
                Flow::Takes(self.job.costs.map_ns, Cause::Work)
            }
            Stage::Release if self.tasks[task].is_unmapped => self.mapped(task),
            Stage::Release => {
                self.vma_locks.end_write();
                self.mmap_lock.downgrade(task, &mut self.woken);
                self.wake_woken();
                self.tasks[task].stage = Stage::Zapping;
                Flow::Takes(self.job.costs.zap_page_ns * self.mapped_pages(task), Cause::Work)
            }
            Stage::Zapping => {
                self.tasks[task].stage = Stage::Zapped;
                Flow::Tells(Cause::Work)
            }
            Stage::Touch => self.touch(task),
            Stage::Drops => self.dropped(task),
            Stage::Zapped => self.unmapped(task),
        }
    }

    /// A writer changes the protection of its mapping, and sleeps.
    pub fn go_on_with_protecting(&mut self, task: TaskId) -> Flow {
        match self.tasks[task].stage {
            Stage::Begin | Stage::Again => self.write_lock(task),
            Stage::Has => self.mark_vma(task),
            Stage::Marked => {
                self.tasks[task].stage = Stage::Zapping;
                Flow::Takes(self.job.costs.protect_ns, Cause::Work)
            }
            Stage::Zapping => {
                self.tasks[task].stage = Stage::Release;
                Flow::Tells(Cause::Work)
            }
            Stage::Release | Stage::Touch | Stage::Drops | Stage::Zapped => {
                self.vma_locks.end_write();
                self.mmap_lock.release_write(task, &mut self.woken);
                self.wake_woken();
                self.tasks[task].stage = Stage::Begin;
                self.counts.protections += 1;
                Flow::Sleeps(self.job.costs.writer_sleeps_ns, Cause::Idle)
            }
        }
    }

    fn write_lock(&mut self, task: TaskId) -> Flow {
        let has = match self.tasks[task].stage {
            Stage::Again => self.mmap_lock.write_again(task, self.now_ns),
            _ => self.mmap_lock.write(task, self.now_ns),
        };
        self.tasks[task].stage = if has { Stage::Has } else { Stage::Again };
        if has {
            return Flow::Goes;
        }
        Flow::Waits(match self.behind() {
            Cause::BehindWriter => Cause::WriteBehindWriter,
            Cause::BehindWindow => Cause::WriteBehindWindow,
            _ => Cause::WriteBehindReaders,
        })
    }

    fn mark_vma(&mut self, task: TaskId) -> Flow {
        self.tasks[task].stage = Stage::Marked;
        if self.vma_locks.mark(self.locked_vma(task)) {
            return Flow::Goes;
        }
        self.vma_writer = Some(task);
        Flow::Waits(Cause::VmaReaders)
    }

    fn mapped(&mut self, task: TaskId) -> Flow {
        let mapping = self.mapping(task);
        let layer = self.mappings.of_mut(file(task)).insert(mapping);
        assert_eq!(layer, Layer::FIRST, "a file is mapped once");
        self.vma_locks.end_write();
        self.mmap_lock.release_write(task, &mut self.woken);
        self.wake_woken();
        let of = &mut self.tasks[task];
        (of.is_unmapped, of.page, of.stage) = (false, 0, Stage::Touch);
        self.return_to_user(task);
        Flow::Goes
    }

    /// Touches pages up to one that is not mapped, which is a fault, or the last.
    fn touch(&mut self, task: TaskId) -> Flow {
        let first = self.tasks[task].page;
        let end = self.job.file_pages.0;
        let mut pages = self.cache.mapped(file(task), Layer::FIRST);
        let PageIndex(page) = pages.touch_to(PageIndex(first), PageIndex(end));
        drop(pages);
        let of = &mut self.tasks[task];
        of.page = page;
        let mut drops_ns = 0;
        if page == end && self.job.one_vma {
            of.stage = Stage::Drops;
            drops_ns = self.job.costs.zap_page_ns * end;
        } else if page == end {
            of.stage = Stage::Begin;
        } else {
            self.log.about(file(task));
            self.log.access(page);
            of.fault = Some(FaultUnderWay {
                fault: Fault::new(PageIndex(page), Access::Read),
                asked: None,
                is_paid: false,
                held: None,
                has_dropped: false,
                begins_again: false,
            });
        }
        Flow::Takes(self.job.costs.touch_ns * (page - first) + drops_ns, Cause::Work)
    }

    fn dropped(&mut self, task: TaskId) -> Flow {
        let mapping = self.mapping(task);
        self.clear(task, &mapping);
        self.completed();
        let of = &mut self.tasks[task];
        (of.page, of.stage) = (0, Stage::Touch);
        self.return_to_user(task);
        Flow::Goes
    }

    /// The entries of a reader's mapping go.
    fn clear(&mut self, task: TaskId, mapping: &Mapping) {
        let whole = mapping.whole;
        let mut pages = self.cache.mapped(file(task), Layer::FIRST);
        map::unmap(mapping, whole.pgoff, whole.end(), &self.opens[task].limits, &mut pages);
    }

    /// Pages of a reader's file that are mapped.
    fn mapped_pages(&mut self, task: TaskId) -> u64 {
        let end = PageIndex(self.job.file_pages.0);
        let pages = self.cache.mapped(file(task), Layer::FIRST);
        let words = by_word(PageIndex(0), end);
        words
            .map(|(word, mask)| u64::from((mask & pages.pages(word, mask).mapped).count_ones()))
            .sum()
    }

    fn unmapped(&mut self, task: TaskId) -> Flow {
        let mapping = self.mapping(task);
        let whole = mapping.whole;
        self.clear(task, &mapping);
        self.tables.remove(whole.start, whole.pages, self.job.arch.pte_entries);
        self.mappings.of_mut(file(task)).remove(Layer::FIRST, whole.pgoff);
        self.charge_kernel();
        self.mmap_lock.release_read(&mut self.woken);
        self.wake_woken();
        self.completed();
        let of = &mut self.tasks[task];
        (of.is_unmapped, of.stage) = (true, Stage::Begin);
        self.return_to_user(task);
        Flow::Goes
    }

    fn completed(&mut self) {
        self.counts.rounds += 1;
        if self.job.until == Until::Rounds(self.counts.rounds) {
            self.ending = Some(Ending::Complete);
        }
    }

    /// The VMA whose lock the faults of `task` take, and that it writes to.
    pub fn locked_vma(&self, task: TaskId) -> u64 {
        if self.job.one_vma { 0 } else { task as u64 }
    }

    /// The VMA of a reader's file: each lies in page-table pages of its own.
    pub fn vma(&self, task: TaskId) -> Vma {
        let entries = self.job.arch.pte_entries;
        let room = self.job.file_pages.0.next_multiple_of(entries);
        Vma {
            start: Vpn(room * task as u64),
            pgoff: PageIndex(0),
            pages: self.job.file_pages,
            advice: Advice::NORMAL,
            executable: false,
        }
    }

    fn mapping(&self, task: TaskId) -> Mapping {
        let mut mapping = Mapping::new(self.vma(task), None);
        mapping.no_reuse = !self.job.mechanisms.second_chance;
        mapping
    }
}

/// The file that a reader maps.
pub fn file(task: TaskId) -> FileId {
    FileId::new(task as u32)
}
