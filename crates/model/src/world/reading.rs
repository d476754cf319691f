//! Windows and pages that are added to the cache and read.

use filemap_core::address::page_table::PageTables;
use filemap_core::cache::{FileCache, FolioRun};
use filemap_core::decision::{Cause, Decision, Log};
use filemap_core::lru::reclaim::BATCH;
use filemap_core::page_cache::PageCache;
use filemap_core::readahead::Window;
use filemap_core::readahead::layout::Layout;
use filemap_core::units::{FileId, Order, PageCount, PageIndex};

use super::Timing;
use super::World;
use crate::Error;
use crate::device::Device;
use crate::open::OpenFile;
use crate::waiting::Pause;

impl<C: PageCache, L: Log> World<'_, C, L> {
    /// Lays out a window of `open`, adds its folios and begins to read them. What the task will use
    /// next begins with page `first`.
    #[inline(never)]
    pub fn read_window(
        &mut self,
        window: &Window,
        first: PageIndex,
        open: &mut OpenFile,
        tables: &PageTables,
    ) {
        self.tally.readahead_calls += 1;
        self.tally.read_around += u64::from(window.cause == Cause::ReadAround);
        self.tally.async_readahead += u64::from(window.cause.is_async());
        let held = self.hold(window, first, open.file, tables);
        let mut layout = Layout::new(window, &open.limits, &mut open.ra, &mut self.log);
        let mut filled = None;
        loop {
            let next = layout.next(&self.memory.cache.file(open.file), &mut self.log);
            let Some(run) = next else { break };
            if filled.is_some_and(|end| run.start != end) {
                // What lies before pages that are cached is read before the rest is added.
                self.submit(open);
            }
            filled = Some(run.end());
            let fits = match run.order {
                // Most are base pages: known to be, they take no shifts.
                Order(0) => self.add_folios(FolioRun { order: Order(0), ..run }, open, tables),
                _ => self.add_folios(run, open, tables),
            };
            if !fits {
                break;
            }
        }
        self.submit(open);
        if let Some((start, pages)) = held {
            self.memory.cache.unlock(open.file, start, pages);
        }
    }

    /// Keeps from reclaim what the task holds that reads the window: the folio whose mark was hit,
    /// and those from page `first` before it. Returns their pages.
    fn hold(
        &mut self,
        window: &Window,
        first: PageIndex,
        file: FileId,
        tables: &PageTables,
    ) -> Option<(PageIndex, PageCount)> {
        if !window.cause.is_async() || self.memory.room(tables) >= window.size {
            return None;
        }
        let cached = self.memory.cache.file(file);
        let marked = cached.folio(window.index).filter(|folio| !folio.locked)?;
        let start = cached.folio(first).map_or(marked.head, |folio| folio.head.min(marked.head));
        drop(cached);
        let pages = marked.end() - start;
        self.memory.cache.lock(file, start, pages);
        Some((start, pages))
    }

    /// Adds the page `index` of `open`, which is absent, and begins to read it; where that
    /// `is_late`, others may have done so. Nothing is done yet where the task has to pause.
    #[inline(never)]
    pub fn read_page(
        &mut self,
        index: PageIndex,
        is_late: bool,
        open: &OpenFile,
        tables: &PageTables,
    ) -> Result<Option<Pause>, Error> {
        if let Some(pause) = self.make_room_for(index, open.file, tables)? {
            return Ok(Some(pause));
        }
        if !is_late || self.memory.cache.file(open.file).folio(index).is_none() {
            let run = FolioRun { start: index, order: Order(0), folios: 1, marked: None };
            self.add(open, run);
            self.devices[open.device].read(run, open.file, self.now_ns);
            self.submitted();
        }
        Ok(None)
    }

    /// Adds the folios of `run`, as far as there is room; `false` where there is not for all.
    ///
    /// Where memory is short the run is taken in parts: first what there is room for, as reclaim
    /// finds that on the list when it comes to the rest. Reclaim also finds up to date what arrived
    /// while the folios before were added.
    #[inline(always)]
    fn add_folios(&mut self, run: FolioRun, open: &OpenFile, tables: &PageTables) -> bool {
        let mut left = run;
        loop {
            let together = self.folios_together(&left, tables);
            let pages = PageCount(together << run.order.0);
            let fits = self.make_room(pages, run.order.pages(), open.file, tables);
            let folios = together.min(fits.0 >> run.order.0);
            if folios > 0 {
                let added = left.first(folios);
                self.add(open, added);
                self.devices[open.device].ask(added);
            }
            if folios < together {
                return false;
            }
            if folios == left.folios {
                return true;
            }
            left = left.behind(folios);
            self.arrivals();
        }
    }

    /// How many folios of `run` are added together: all that fit, and then what reclaim makes room
    /// for at a time. That is one large folio, or as many whole batches of small ones as are added
    /// by the time the next request is complete.
    fn folios_together(&self, run: &FolioRun, tables: &PageTables) -> u64 {
        let room = self.memory.room(tables);
        let fit = room.0 >> run.order.0;
        if fit >= run.folios {
            return run.folios;
        }
        if self.memory.is_cgroups() {
            return fit.max(1);
        }
        let pages = run.order.pages();
        if room >= BATCH.max(PageCount(pages)) {
            return fit;
        }
        if pages >= BATCH.0 {
            return 1;
        }
        let Some(done_ns) = self.next_done_ns.filter(|_| self.timing == Timing::Device) else {
            return run.folios;
        };
        let until_ns = done_ns.saturating_sub(self.now_ns);
        let cost = &self.profile.cost;
        let page_ns = cost.add_page_ns.saturating_add(cost.add_folio_ns / pages).max(1);
        if page_ns.saturating_mul(run.pages().0) <= until_ns {
            return run.folios;
        }
        let added = until_ns / page_ns;
        let batches = added.saturating_add(1).div_ceil(BATCH.0).saturating_mul(BATCH.0);
        run.folios.min(batches / pages)
    }

    // A page that is added by itself needs none of the loops.
    #[inline(always)]
    fn add(&mut self, open: &OpenFile, run: FolioRun) {
        self.log.record(Decision::Added {
            start: run.start,
            order: run.order,
            folios: run.folios,
            marked: run.marked,
        });
        self.memory.add(open.file, run);
        self.tally.pages_read += run.pages().0;
        let cost = &self.profile.cost;
        let pages_ns = cost.add_page_ns.saturating_mul(run.pages().0);
        self.pass(pages_ns.saturating_add(cost.add_folio_ns.saturating_mul(run.folios)));
    }

    /// Begins to read what was asked for of `open`.
    fn submit(&mut self, open: &OpenFile) {
        if self.devices[open.device].submit(open.file, self.now_ns) {
            self.submitted();
        }
    }

    /// Something is being read that was not.
    #[inline]
    fn submitted(&mut self) {
        self.next_done_ns = self.devices.iter().filter_map(Device::next_done_ns).min();
        if let Some(done_ns) = self.awaited_ns() {
            self.turn_ns = self.turn_ns.min(done_ns.saturating_sub(1));
        }
    }
}
