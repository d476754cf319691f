//! Room in memory, for what a task cannot do without.

use filemap_core::address::page_table::PageTables;
use filemap_core::cache::FolioRun;
use filemap_core::decision::{Log, Wait};
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, Order, PageCount, PageIndex};

use super::World;
use crate::Error;
use crate::waiting::Pause;

/// After so long a task tries again that finds nothing to reclaim, and nothing being read.
const RETRY_NS: u64 = 10_000;

impl<C: PageCache, L: Log> World<'_, C, L> {
    /// Makes room for a page that no file backs, and holds it. Nothing is done yet where the task
    /// has to pause.
    pub fn hold_page(
        &mut self,
        index: PageIndex,
        file: FileId,
        tables: &PageTables,
    ) -> Result<Option<Pause>, Error> {
        let page = FolioRun { start: index, order: Order(0), folios: 1, marked: None };
        let pause = self.make_room_for(page, file, tables)?;
        if pause.is_none() {
            self.memory.hold(PageCount(1));
            self.charged(PageCount(1), tables);
        }
        Ok(pause)
    }

    /// Makes room for the folio that a fault or a read of `file` cannot do without.
    /// What is being read cannot be reclaimed, and is waited for.
    pub(super) fn make_room_for(
        &mut self,
        folio: FolioRun,
        file: FileId,
        tables: &PageTables,
    ) -> Result<Option<Pause>, Error> {
        let pages = folio.pages();
        loop {
            match self.make_room(pages, pages.0, file, tables) {
                Room::Paused(pause) => return Ok(Some(pause)),
                Room::For(room) if room >= pages => return Ok(None),
                Room::For(_) => {}
            }
            if self.next_done_ns.is_none() {
                if self.windows.is_empty() && self.pins.is_empty() && !self.memory.is_freeing() {
                    return Err(Error::OutOfMemory { index: folio.start.0 });
                }
                // Others have still to begin to read what they have added, or to use what arrived.
                self.pass(RETRY_NS);
                return Ok(Some(Pause::Turn));
            }
            if !self.is_alone {
                return Ok(Some(Pause::Room));
            }
            let began_ns = self.now_ns;
            self.wait_for_device();
            self.log.waited(self.task, Wait::Room, self.now_ns - began_ns);
        }
    }

    /// Reclaims for `pages` more pages in folios of `unit` while a task is at `file`, which takes
    /// its time. Where the task has to pause, it is to be called again.
    // One call a run of pages, of which windows add millions.
    #[inline(always)]
    pub(super) fn make_room(
        &mut self,
        pages: PageCount,
        unit: u64,
        file: FileId,
        tables: &PageTables,
    ) -> Room {
        self.memory.flush_if_due(self.now_ns, self.begun);
        if self.memory.room(tables) >= pages && self.reclaims.is_empty() {
            return Room::For(pages);
        }
        let room = self.reclaim_for(pages, PageCount(unit), tables);
        self.log.about(file);
        room
    }

    // Within its caller it would take the registers of those who need no room.
    #[inline(never)]
    fn reclaim_for(&mut self, pages: PageCount, unit: PageCount, tables: &PageTables) -> Room {
        let mut fits = self.memory.room(tables);
        while fits < pages || self.reclaims.has(self.task) {
            // Each folio that finds no room in a cgroup reclaims for itself.
            let goal =
                if self.memory.is_cgroups() { unit } else { self.memory.missing(pages, tables) };
            let evicted = match self.reclaim(goal) {
                Ok(evicted) => evicted,
                Err(pause) => return Room::Paused(pause),
            };
            fits = self.memory.room(tables);
            if evicted == PageCount(0) || !self.memory.is_cgroups() {
                break;
            }
        }
        Room::For(fits.min(pages))
    }
}

/// What there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// So many of the pages that were asked for.
    For(PageCount),
    /// The task pauses before that is known.
    Paused(Pause),
}
