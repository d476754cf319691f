//! Room in memory, for what a task cannot do without.

use filemap_core::address::page_table::PageTables;
use filemap_core::decision::{Log, Wait};
use filemap_core::lru::lists::Shrunk;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageCount, PageIndex};

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
        let pause = self.make_room_for(index, file, tables)?;
        if pause.is_none() {
            self.memory.hold(PageCount(1));
            self.charged(PageCount(1), tables);
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
        loop {
            let room = self.make_room(PageCount(1), 1, file, tables);
            if room.evicted > PageCount(0) && room.took_ns > 0 && self.turn_is_over() {
                return Ok(Some(Pause::Turn));
            }
            if room.fits > PageCount(0) {
                return Ok(None);
            }
            if self.next_done_ns.is_none() {
                if self.windows.is_empty() && self.pins.is_empty() && !self.memory.is_freeing() {
                    return Err(Error::OutOfMemory { index: index.0 });
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

    /// Reclaims for `pages` more pages while a task is at `file`, which takes its time.
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
        let unit = PageCount(unit);
        let (fits, shrunk) = self.memory.make_room(pages, unit, tables, &mut self.log);
        self.tally.evicted_pages += shrunk.evicted.0;
        self.log.about(file);
        let took_ns = self.pass_reclaim(&shrunk);
        Room { fits, evicted: shrunk.evicted, took_ns }
    }

    /// Lets the time for what reclaim did pass. Returns how long that is.
    #[inline(always)]
    pub(super) fn pass_reclaim(&mut self, shrunk: &Shrunk) -> u64 {
        let cost = &self.profile.cost;
        let evict_ns = cost.evict_page_ns.saturating_mul(shrunk.evicted.0);
        let took_ns = cost.keep_page_ns.saturating_mul(shrunk.kept.0).saturating_add(evict_ns);
        self.pass(took_ns);
        took_ns
    }
}

/// What there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// How many of the pages fit that were asked for.
    pub(super) fits: PageCount,
    /// How many others were evicted for that.
    pub(super) evicted: PageCount,
    /// How long that took.
    pub(super) took_ns: u64,
}
