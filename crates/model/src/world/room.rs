//! Room in memory, for what a task cannot do without.

use filemap_core::address::page_table::PageTables;
use filemap_core::decision::{Log, Wait};
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageCount, PageIndex};

use super::World;
use crate::Error;
use crate::waiting::Pause;

impl<C: PageCache, L: Log> World<'_, C, L> {
    /// Makes room for a page that no file backs, and holds it. Nothing is done yet where the task
    /// has to pause.
    pub fn hold_page(
        &mut self,
        index: PageIndex,
        file: FileId,
        tables: &PageTables,
    ) -> Result<Option<Pause>, Error> {
        let pause = self.make_room_for(index, file, tables)?;
        if pause.is_none() {
            self.memory.hold(PageCount(1));
        }
        Ok(pause)
    }

    /// Makes room for the page that a fault or a read of page `index` of `file` cannot do without.
    /// What is being read cannot be reclaimed, and is waited for.
    pub(super) fn make_room_for(
        &mut self,
        index: PageIndex,
        file: FileId,
        tables: &PageTables,
    ) -> Result<Option<Pause>, Error> {
        while self.make_room(PageCount(1), 1, file, tables) < PageCount(1) {
            if self.next_done_ns.is_none() {
                return Err(Error::OutOfMemory { index: index.0 });
            }
            if !self.is_alone {
                return Ok(Some(Pause::Room));
            }
            let began_ns = self.now_ns;
            self.wait_for_device();
            self.log.waited(self.task, Wait::Room, self.now_ns - began_ns);
        }
        Ok(None)
    }

    /// Reclaims for `pages` more pages while a task is at `file`. Returns how many of them fit.
    // One call a run of pages, of which windows add millions.
    #[inline(always)]
    pub(super) fn make_room(
        &mut self,
        pages: PageCount,
        unit: u64,
        file: FileId,
        tables: &PageTables,
    ) -> PageCount {
        self.memory.flush_if_due(self.now_ns, self.begun);
        let unit = PageCount(unit);
        let (fits, evicted) = self.memory.make_room(pages, unit, tables, &mut self.log);
        self.tally.evicted_pages += evicted.0;
        self.log.about(file);
        fits
    }
}
