//! Adds windows and single pages to the cache, and reads them.

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

use super::memory_budget::Reservation;
use super::pins::PinReason;
use super::{DISK, HOLES, Timing, World};
use crate::Error;
use crate::device::{self, Device};
use crate::holes::{self, HolePart};
use crate::open::OpenFile;
use crate::wait_queue::Pause;

/// The window of a paused task.
#[derive(Debug)]
pub struct PausedWindow {
    layout: Layout<Window>,
    file: FileId,
    /// The page after the last one added.
    filled: Option<PageIndex>,
    /// By device: folios added whose read is not submitted yet.
    pending: [Vec<device::PendingRun>; 2],
}

impl PausedWindow {
    /// Whether page `index` of `file` is added but its read is not submitted.
    pub fn has_added(&self, file: FileId, index: PageIndex) -> bool {
        let holds = |pending: &device::PendingRun| {
            pending.start <= index && index < pending.start + pending.pages
        };
        self.file == file && self.pending.iter().flatten().any(holds)
    }
}

/// Where a task pauses within a window.
struct PausePoint {
    /// Next page to add.
    next: PageIndex,
    filled: Option<PageIndex>,
    pause: Pause,
}

/// Result of adding folios.
enum AddResult {
    All,
    /// Memory ran out.
    NoRoom,
    /// The task has to repay `memory.high` before it adds this page.
    MustRepay(PageIndex),
    /// The task pauses before it adds this page.
    Paused(PageIndex, Pause),
}

impl<C: PageCache> World<'_, C> {
    /// Lays out a window of `open`, adds its folios and submits the reads. The task will next use
    /// the pages from `first` on. If the task has to pause, it is to be called again.
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
        self.log.at(self.task, self.now_ns);
        self.tally.readahead_calls += 1;
        self.tally.read_around += u64::from(window.cause == Cause::ReadAround);
        self.tally.async_readahead += u64::from(window.cause.is_async());
        let held = self.lock_held_folios(window, first, open.file, tables);
        let mut layout = Layout::new(window, &open.limits, &mut open.ra, &mut self.log);
        if let Some(paused) = self.add_window(&mut layout, None, open, tables) {
            if let Some((start, pages)) = held {
                self.memory.cache.unlock(open.file, start, pages);
                self.pin(self.task, PinReason::Marked, open.file, window.index);
            }
            return Some(self.pause_window(layout.into_owned(), paused, open));
        }
        self.submit(open);
        if let Some((start, pages)) = held {
            self.memory.cache.unlock(open.file, start, pages);
        }
        None
    }

    /// Resumes a paused window.
    #[inline(never)]
    fn resume_window(
        &mut self,
        under_way: PausedWindow,
        open: &OpenFile,
        tables: &PageTables,
    ) -> Option<Pause> {
        let PausedWindow { mut layout, filled, pending, .. } = under_way;
        for (device, pending) in self.devices.iter_mut().zip(pending) {
            device.restore_pending(pending);
        }
        if let Some(paused) = self.add_window(&mut layout, filled, open, tables) {
            return Some(self.pause_window(layout, paused, open));
        }
        // Other tasks may have added the folios it made room for.
        self.end_reclaim();
        self.submit(open);
        self.unpin(PinReason::Marked);
        None
    }

    fn pause_window(
        &mut self,
        mut layout: Layout<Window>,
        paused: PausePoint,
        open: &OpenFile,
    ) -> Pause {
        let PausePoint { next, filled, pause } = paused;
        layout.rewind(next);
        let pending = [DISK, HOLES].map(|device| self.devices[device].take_pending());
        let file = open.file;
        let under_way = PausedWindow { layout, file, filled, pending };
        self.windows.insert(self.task, under_way);
        pause
    }

    /// Adds the folios of a window from the position of `layout`. `filled` is the page after the
    /// last one added. Returns where the task has to pause, if it has to.
    #[inline(always)]
    fn add_window<W: Borrow<Window>>(
        &mut self,
        layout: &mut Layout<W>,
        mut filled: Option<PageIndex>,
        open: &OpenFile,
        tables: &PageTables,
    ) -> Option<PausePoint> {
        loop {
            if self.must_repay() {
                if let Some(pause) = self.repay(tables) {
                    let next = layout.position();
                    return Some(PausePoint { next, filled, pause });
                }
                self.log.about(open.file);
            }
            let next = layout.next(&self.memory.cache.file(open.file), &mut self.log);
            let run = next?;
            if filled.is_some_and(|end| run.start != end) {
                // Folios before cached pages are submitted before the rest is added.
                self.submit(open);
            }
            filled = Some(run.end());
            let added = match run.order {
                // Most are base pages; a constant order saves the shifts.
                Order(0) => self.add_folios(FolioRun { order: Order(0), ..run }, open, tables),
                _ => self.add_folios(run, open, tables),
            };
            match added {
                AddResult::All => {}
                AddResult::NoRoom => return None,
                AddResult::MustRepay(next) => {
                    filled = Some(next);
                    layout.rewind(next);
                }
                AddResult::Paused(next, pause) => {
                    return Some(PausePoint { next, filled: Some(next), pause });
                }
            }
        }
    }

    /// Locks the folios held by the task against reclaim: the folio whose mark was hit, and those
    /// from page `first` up to it. Returns their pages.
    fn lock_held_folios(
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

    /// Adds the absent page `index` of `open` and submits its read. On a retry (`is_late`) another
    /// task may have done so. Nothing is done if the task has to pause.
    #[inline(never)]
    pub fn read_page(
        &mut self,
        index: PageIndex,
        is_late: bool,
        open: &OpenFile,
        tables: &PageTables,
    ) -> Result<Option<Pause>, Error> {
        self.log.at(self.task, self.now_ns);
        let run = open.limits.smallest_folio(index);
        if let Some(pause) = self.make_room_for(run, open.file, tables)? {
            return Ok(Some(pause));
        }
        if !is_late || self.memory.cache.file(open.file).folio(index).is_none() {
            self.add(open, run);
            if self.memory.high().is_some() {
                self.record_charge(run.pages(), tables);
            }
            let device = self.device_of(&run, open);
            if device == HOLES {
                self.advance(self.profile.cost.zero_page_ns);
            }
            let before = self.devices[device].in_flight_requests();
            self.devices[device].read(run, open.file, self.now_ns);
            self.log_submission(device, before);
            self.submitted();
        }
        Ok(None)
    }

    /// Adds the folios of `run` as far as memory allows.
    ///
    /// If memory is short, the run is added in parts: first what fits, so that reclaim for the rest
    /// finds it on the list. Reclaim also sees the folios that arrive in the meantime.
    #[inline(always)]
    fn add_folios(&mut self, run: FolioRun, open: &OpenFile, tables: &PageTables) -> AddResult {
        let mut left = run;
        loop {
            let together = self.batch_folios(&left, tables);
            let pages = PageCount(together << run.order.0);
            let room = match self.make_room(pages, run.order.pages(), open.file, tables) {
                Reservation::Pages(room) => room,
                Reservation::Paused(pause) => return AddResult::Paused(left.start, pause),
            };
            // If reclaim fails, the window ends here.
            let folios = together.min(room.0 >> run.order.0);
            if folios > 0 {
                let added = left.first(folios);
                self.add(open, added);
                self.add_pending(added, open);
            }
            if self.memory.high().is_some() {
                self.record_charge(PageCount(folios << run.order.0), tables);
            }
            if folios < together {
                return AddResult::NoRoom;
            }
            if folios == left.folios {
                return AddResult::All;
            }
            left = left.after_first(folios);
            if self.must_repay() {
                return AddResult::MustRepay(left.start);
            }
            if self.profile.voluntary_preemption && self.must_yield() {
                return AddResult::Paused(left.start, Pause::Yield);
            }
            self.process_completions();
        }
    }

    /// Number of folios of `run` to add together: all that fit, and then as many as reclaim makes
    /// room for at a time. That is one large folio, or as many whole batches of small ones as are
    /// added by the completion of the next request. If the task may have to repay or be preempted
    /// in between, at most one charge batch.
    fn batch_folios(&self, run: &FolioRun, tables: &PageTables) -> u64 {
        let fit = self.fitting_folios(run, tables);
        if self.memory.high().is_some() || self.profile.voluntary_preemption {
            fit.min((CHARGE_BATCH.0 >> run.order.0).max(1))
        } else {
            fit
        }
    }

    fn fitting_folios(&self, run: &FolioRun, tables: &PageTables) -> u64 {
        let room = self.memory.room(tables);
        let fit = room.0 >> run.order.0;
        if fit >= run.folios {
            return run.folios;
        }
        if self.memory.is_memcg_limit() {
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

    // Inlined: a single page needs none of the loops.
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
        if !open.holes.is_empty() {
            self.tally.hole_pages += holes::pages_in_holes(&run, &open.holes);
        }
        let cost = &self.profile.cost;
        let pages_ns = cost.add_page_ns.saturating_mul(run.pages().0);
        self.advance(pages_ns.saturating_add(cost.add_folio_ns.saturating_mul(run.folios)));
    }

    /// The device of a folio of `open`.
    #[inline]
    fn device_of(&self, folio: &FolioRun, open: &OpenFile) -> usize {
        let is_hole =
            !open.holes.is_empty() && holes::first_part(*folio, &open.holes).1 == HolePart::Hole;
        if is_hole { HOLES } else { DISK }
    }

    /// Adds folios of `open` to the pending requests of their devices.
    #[inline(always)]
    fn add_pending(&mut self, run: FolioRun, open: &OpenFile) {
        if open.holes.is_empty() {
            self.devices[DISK].add_pending(run);
        } else {
            self.add_pending_parts(run, open);
        }
    }

    #[inline(never)]
    fn add_pending_parts(&mut self, mut run: FolioRun, open: &OpenFile) {
        while run.folios > 0 {
            let (part, how) = holes::first_part(run, &open.holes);
            match how {
                HolePart::Data => self.devices[DISK].add_pending(part),
                HolePart::Hole => self.devices[HOLES].add_pending(part),
                HolePart::Mixed(pages) => self.devices[DISK].add_pending_partly(part, pages),
            }
            run = run.after_first(part.folios);
        }
    }

    /// Submits the pending reads of `open`.
    fn submit(&mut self, open: &OpenFile) {
        if !open.holes.is_empty() {
            let pages = self.devices[HOLES].pending_pages();
            if self.profile.cost.zero_page_ns > 0 {
                self.advance(self.profile.cost.zero_page_ns.saturating_mul(pages.0));
            }
            self.submit_to(HOLES, open.file);
        }
        self.submit_to(DISK, open.file);
    }

    #[inline(always)]
    fn submit_to(&mut self, device: usize, file: FileId) {
        let before = self.devices[device].in_flight_requests();
        if self.devices[device].submit(file, self.now_ns) {
            self.log_submission(device, before);
            self.submitted();
            self.complete_promptly();
        }
    }

    /// Logs the requests of `device` submitted since `before` were in flight.
    #[inline]
    fn log_submission(&mut self, device: usize, before: u64) {
        if device == DISK && self.log.is_kept() {
            let now = self.devices[device].in_flight_requests();
            self.log.requests_changed(self.now_ns, (now - before) as i64);
        }
    }

    /// Updates the next completion after a submission.
    #[inline]
    fn submitted(&mut self) {
        self.next_done_ns = self.devices.iter().filter_map(Device::next_done_ns).min();
        if let Some(done_ns) = self.awaited_ns() {
            self.until_ns = self.until_ns.min(done_ns.saturating_sub(1));
        }
    }
}
