//! Windows and pages that are added to the cache and read.

use std::borrow::Borrow;

use filemap_core::address::page_table::PageTables;
use filemap_core::cache::{FileCache, FolioRun};
use filemap_core::decision::{Cause, Decision, Log};
use filemap_core::lru::high::CHARGE_BATCH;
use filemap_core::lru::reclaim::BATCH;
use filemap_core::page_cache::PageCache;
use filemap_core::readahead::Window;
use filemap_core::readahead::layout::Layout;
use filemap_core::units::{FileId, Order, PageCount, PageIndex};

use super::memory_budget::Room;
use super::pins::Why;
use super::{HOLES, Timing, World};
use crate::Error;
use crate::device::{self, Device};
use crate::open::OpenFile;
use crate::waiting::Pause;

/// A window whose task has paused.
#[derive(Debug)]
pub struct WindowUnderWay {
    layout: Layout<Window>,
    file: FileId,
    /// The page after the last one that was added.
    filled: Option<PageIndex>,
    /// What was added and is not being read yet.
    asked: Vec<device::Asked>,
}

impl WindowUnderWay {
    /// Whether it has added the page `index` of `file`, and not begun to read it.
    pub fn has_added(&self, file: FileId, index: PageIndex) -> bool {
        let holds =
            |asked: &device::Asked| asked.start <= index && index < asked.start + asked.pages;
        self.file == file && self.asked.iter().any(holds)
    }
}

/// Where the task of a window pauses.
struct PausedAt {
    /// The page that is added next.
    next: PageIndex,
    filled: Option<PageIndex>,
    pause: Pause,
}

/// What became of folios that were to be added.
enum AddedFolios {
    All,
    /// There is no room for all of them.
    NoRoom,
    /// The task has to repay before it adds this page.
    Owes(PageIndex),
    /// The task pauses before it adds this page.
    Paused(PageIndex, Pause),
}

impl<C: PageCache, L: Log> World<'_, C, L> {
    /// Lays out a window of `open`, adds its folios and begins to read them. What the task will use
    /// next begins with page `first`. Where the task has to pause before all is done, it is to be
    /// called again.
    #[inline(never)]
    pub fn read_window(
        &mut self,
        window: &Window,
        first: PageIndex,
        open: &mut OpenFile,
        tables: &PageTables,
    ) -> Option<Pause> {
        if let Some(under_way) = self.windows.take(self.task) {
            return self.resume_window(under_way, open, tables);
        }
        self.tally.readahead_calls += 1;
        self.tally.read_around += u64::from(window.cause == Cause::ReadAround);
        self.tally.async_readahead += u64::from(window.cause.is_async());
        let held = self.hold(window, first, open.file, tables);
        let mut layout = Layout::new(window, &open.limits, &mut open.ra, &mut self.log);
        if let Some(paused) = self.add_window(&mut layout, None, open, tables) {
            if let Some((start, pages)) = held {
                self.memory.cache.unlock(open.file, start, pages);
                self.pin(self.task, Why::Marked, open.file, window.index);
            }
            return Some(self.pause_window(layout.into_owned(), paused, open));
        }
        self.submit(open);
        if let Some((start, pages)) = held {
            self.memory.cache.unlock(open.file, start, pages);
        }
        None
    }

    /// Goes on with a window that has paused.
    #[inline(never)]
    fn resume_window(
        &mut self,
        under_way: WindowUnderWay,
        open: &OpenFile,
        tables: &PageTables,
    ) -> Option<Pause> {
        let WindowUnderWay { mut layout, filled, asked, .. } = under_way;
        self.devices[open.device].ask_again(asked);
        if let Some(paused) = self.add_window(&mut layout, filled, open, tables) {
            return Some(self.pause_window(layout, paused, open));
        }
        // Others may have added what it made room for.
        self.end_reclaim();
        self.submit(open);
        self.unpin(Why::Marked);
        None
    }

    fn pause_window(
        &mut self,
        mut layout: Layout<Window>,
        paused: PausedAt,
        open: &OpenFile,
    ) -> Pause {
        let PausedAt { next, filled, pause } = paused;
        layout.rewind(next);
        let asked = self.devices[open.device].take_asked();
        let file = open.file;
        let under_way = WindowUnderWay { layout, file, filled, asked };
        self.windows.insert(self.task, under_way);
        pause
    }

    /// Adds the folios of a window from where `layout` is. `filled` is the page after the last one
    /// that was added. Returns where the task has to pause, if it has to.
    #[inline(always)]
    fn add_window<W: Borrow<Window>>(
        &mut self,
        layout: &mut Layout<W>,
        mut filled: Option<PageIndex>,
        open: &OpenFile,
        tables: &PageTables,
    ) -> Option<PausedAt> {
        loop {
            if self.must_repay() {
                if let Some(pause) = self.repay(tables) {
                    let next = layout.position();
                    return Some(PausedAt { next, filled, pause });
                }
                self.log.about(open.file);
            }
            let next = layout.next(&self.memory.cache.file(open.file), &mut self.log);
            let run = next?;
            if filled.is_some_and(|end| run.start != end) {
                // What lies before pages that are cached is read before the rest is added.
                self.submit(open);
            }
            filled = Some(run.end());
            let added = match run.order {
                // Most are base pages: known to be, they take no shifts.
                Order(0) => self.add_folios(FolioRun { order: Order(0), ..run }, open, tables),
                _ => self.add_folios(run, open, tables),
            };
            match added {
                AddedFolios::All => {}
                AddedFolios::NoRoom => return None,
                AddedFolios::Owes(next) => {
                    filled = Some(next);
                    layout.rewind(next);
                }
                AddedFolios::Paused(next, pause) => {
                    return Some(PausedAt { next, filled: Some(next), pause });
                }
            }
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
        let fits = self.memory.high().is_none() && self.memory.room(tables) >= window.size;
        if !window.cause.is_async() || fits {
            return None;
        }
        let cached = self.memory.cache.file(file);
        let marked = cached.folio(window.index).filter(|folio| !folio.locked)?;
        let start = cached.folio(first).map_or(marked.head, |folio| folio.head.min(marked.head));
        drop(cached);
        let pages = marked.end() - start;
        if self.has_pinned(file, start..marked.end()) {
            return None;
        }
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
        let run = open.limits.smallest_folio(index);
        if let Some(pause) = self.make_room_for(run, open.file, tables)? {
            return Ok(Some(pause));
        }
        if !is_late || self.memory.cache.file(open.file).folio(index).is_none() {
            self.add(open, run);
            if self.memory.high().is_some() {
                self.charged(run.pages(), tables);
            }
            if open.device == HOLES {
                self.pass(self.profile.cost.zero_page_ns);
            }
            self.devices[open.device].read(run, open.file, self.now_ns);
            self.submitted();
        }
        Ok(None)
    }

    /// Adds the folios of `run`, as far as there is room.
    ///
    /// Where memory is short the run is taken in parts: first what there is room for, as reclaim
    /// finds that on the list when it comes to the rest. Reclaim also finds up to date what arrived
    /// while the folios before were added.
    #[inline(always)]
    fn add_folios(&mut self, run: FolioRun, open: &OpenFile, tables: &PageTables) -> AddedFolios {
        let mut left = run;
        loop {
            let together = self.folios_together(&left, tables);
            let pages = PageCount(together << run.order.0);
            let room = match self.make_room(pages, run.order.pages(), open.file, tables) {
                Room::For(room) => room,
                Room::Paused(pause) => return AddedFolios::Paused(left.start, pause),
            };
            // Who reclaims in vain gives up.
            let folios = together.min(room.0 >> run.order.0);
            if folios > 0 {
                let added = left.first(folios);
                self.add(open, added);
                self.devices[open.device].ask(added);
            }
            if self.memory.high().is_some() {
                self.charged(PageCount(folios << run.order.0), tables);
            }
            if folios < together {
                return AddedFolios::NoRoom;
            }
            if folios == left.folios {
                return AddedFolios::All;
            }
            left = left.behind(folios);
            if self.must_repay() {
                return AddedFolios::Owes(left.start);
            }
            if self.profile.voluntary_preemption && self.turn_is_over() {
                return AddedFolios::Paused(left.start, Pause::Turn);
            }
            self.arrivals();
        }
    }

    /// How many folios of `run` are added together: all that fit, and then what reclaim makes room
    /// for at a time. That is one large folio, or as many whole batches of small ones as are added
    /// by the time the next request is complete. Where the task may have to repay or loses its CPU
    /// in between, these are no more than are charged together.
    fn folios_together(&self, run: &FolioRun, tables: &PageTables) -> u64 {
        let fit = self.folios_that_fit(run, tables);
        if self.memory.high().is_some() || self.profile.voluntary_preemption {
            fit.min((CHARGE_BATCH.0 >> run.order.0).max(1))
        } else {
            fit
        }
    }

    fn folios_that_fit(&self, run: &FolioRun, tables: &PageTables) -> u64 {
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
        if open.device == HOLES && self.profile.cost.zero_page_ns > 0 {
            let pages = self.devices[open.device].asked_pages();
            self.pass(self.profile.cost.zero_page_ns.saturating_mul(pages.0));
        }
        if self.devices[open.device].submit(open.file, self.now_ns) {
            self.submitted();
            self.arrive_promptly();
        }
    }

    /// Something is being read that was not.
    #[inline]
    fn submitted(&mut self) {
        self.next_done_ns = self.devices.iter().filter_map(Device::next_done_ns).min();
        if let Some(done_ns) = self.awaited_ns() {
            self.until_ns = self.until_ns.min(done_ns.saturating_sub(1));
        }
    }
}
