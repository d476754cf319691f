//! Reserves memory, reclaiming if necessary.

use filemap_core::address::page_table::PageTables;
use filemap_core::cache::FolioRun;
use filemap_core::decision::{Log, TaskWait};
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, Order, PageCount, PageIndex};

use super::World;
use crate::Error;
use crate::wait_queue::Pause;

/// Retry interval of a task that found nothing to reclaim and nothing being read.
const RETRY_INTERVAL_NS: u64 = 10_000;

impl<C: PageCache> World<'_, C> {
    /// Reserves and charges an anonymous page: a private copy of a page of `file`, or other memory.
    /// Nothing is charged if the task has to pause.
    pub fn charge_page(
        &mut self,
        index: PageIndex,
        file: FileId,
        tables: &PageTables,
    ) -> Result<Option<Pause>, Error> {
        let page = FolioRun { start: index, order: Order(0), folios: 1, marked: None };
        let pause = self.make_room_for(page, file, tables)?;
        if pause.is_none() {
            self.memory.charge_anonymous(PageCount(1));
            self.record_charge(PageCount(1), tables);
        }
        Ok(pause)
    }

    /// Reserves memory for a folio that a fault or read of `file` depends on. If everything
    /// reclaimable is locked for I/O, it waits.
    pub(super) fn make_room_for(
        &mut self,
        folio: FolioRun,
        file: FileId,
        tables: &PageTables,
    ) -> Result<Option<Pause>, Error> {
        let pages = folio.pages();
        loop {
            match self.make_room(pages, pages.0, file, tables) {
                Reservation::Paused(pause) => return Ok(Some(pause)),
                Reservation::Pages(room) if room >= pages => return Ok(None),
                Reservation::Pages(_) => {}
            }
            if self.next_done_ns.is_none() {
                if self.windows.is_empty() && self.pins.is_empty() && !self.memory.is_freeing() {
                    return Err(Error::OutOfMemory { index: folio.start.0 });
                }
                // Other tasks have yet to submit I/O for folios they added, or to use folios that
                // arrived.
                self.advance(RETRY_INTERVAL_NS);
                return Ok(Some(Pause::Yield));
            }
            if !self.is_single_task {
                return Ok(Some(Pause::Memory));
            }
            let began_ns = self.now_ns;
            self.wait_for_device();
            self.log.waited(self.task, TaskWait::Room, began_ns, self.now_ns);
        }
    }

    /// Reclaims until `pages` more pages fit, in folios of `unit` pages, on behalf of a task
    /// working on `file`. If the task has to pause, it is to be called again.
    // Called once per run of pages; windows add millions.
    #[inline(always)]
    pub(super) fn make_room(
        &mut self,
        pages: PageCount,
        unit: u64,
        file: FileId,
        tables: &PageTables,
    ) -> Reservation {
        self.memory.flush_if_due(self.now_ns, self.begun);
        if self.memory.room(tables) >= pages && self.reclaims.is_empty() {
            return Reservation::Pages(pages);
        }
        let room = self.reclaim_for(pages, PageCount(unit), tables);
        self.log.about(file);
        room
    }

    // Out of line: it would cost registers on the path where nothing is reclaimed.
    #[inline(never)]
    fn reclaim_for(
        &mut self,
        pages: PageCount,
        unit: PageCount,
        tables: &PageTables,
    ) -> Reservation {
        let mut fits = self.memory.room(tables);
        while fits < pages || self.reclaims.has(self.task) {
            // In a memory cgroup each folio that does not fit reclaims separately.
            let goal = if self.memory.is_memcg_limit() {
                unit
            } else {
                self.memory.shortfall(pages, tables)
            };
            let evicted = match self.reclaim(goal) {
                Ok(evicted) => evicted,
                Err(pause) => return Reservation::Paused(pause),
            };
            fits = self.memory.room(tables);
            if evicted == PageCount(0) || !self.memory.is_memcg_limit() {
                break;
            }
        }
        Reservation::Pages(fits.min(pages))
    }
}

/// Result of reserving memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reservation {
    /// This many of the requested pages fit.
    Pages(PageCount),
    /// The task has to pause first.
    Paused(Pause),
}
