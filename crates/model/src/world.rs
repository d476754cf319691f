//! What all tasks share: the clock, the devices and the memory.

use filemap_core::address::page_table::PageTables;
use filemap_core::cache::{FileCache, FolioRun};
use filemap_core::decision::{Cause, Decision, Log};
use filemap_core::lru::reclaim::BATCH;
use filemap_core::page_cache::PageCache;
use filemap_core::readahead::Window;
use filemap_core::readahead::layout::Layout;
use filemap_core::units::{FileId, Order, PageCount, PageIndex};

use crate::Error;
use crate::device::Device;
use crate::journal::Journal;
use crate::memory::Memory;
use crate::open::OpenFile;
use crate::profile::Profile;
use crate::tally::Tally;
use crate::waiting::{Pause, Waiting};

/// When what is read arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// As the profile's device delivers it.
    #[default]
    Device,
    /// Within an access only what it waits for, and everything before the next. What a program
    /// meets then depends on no device, so another engine can be compared line by line.
    Settled,
}

/// How far tasks may run ahead of each other while they take no fault: about the time of one. They
/// would take turns at each access otherwise, which would take most of the model's time.
const AHEAD_NS: u64 = 1_000;

/// The machine that a program runs on.
#[derive(Debug)]
pub struct World<'a, C, L> {
    pub profile: &'a Profile,
    pub timing: Timing,
    pub memory: Memory<C>,
    /// A file says which of them it lies on.
    pub devices: Vec<Device>,
    pub log: Journal<'a, L>,
    /// What the task at work has counted in its phase.
    pub tally: Tally,
    /// Tasks that wait for what is being read.
    pub waiting: Waiting,
    /// Whether only one task is left, which then waits by letting the time pass.
    pub is_alone: bool,
    /// The time of the task at work.
    now_ns: u64,
    /// Up to when it may go on before something else comes first.
    turn_ns: u64,
    /// Up to when its CPU is its own.
    slice_ends_ns: u64,
    /// When the next request will be complete: asked for at every step, most often in vain.
    next_done_ns: Option<u64>,
    /// Most memory that the model itself may take.
    most_bytes: u64,
    /// Accesses that are to be made in all, and those that were begun.
    accesses: u64,
    begun: u64,
}

impl<'a, C: PageCache, L: Log> World<'a, C, L> {
    /// A machine at time 0.
    pub fn new(
        profile: &'a Profile,
        timing: Timing,
        memory: Memory<C>,
        devices: Vec<Device>,
        log: Journal<'a, L>,
    ) -> World<'a, C, L> {
        World {
            profile,
            timing,
            memory,
            devices,
            log,
            tally: Tally::default(),
            waiting: Waiting::default(),
            is_alone: true,
            now_ns: 0,
            turn_ns: u64::MAX,
            slice_ends_ns: u64::MAX,
            next_done_ns: None,
            most_bytes: u64::MAX,
            accesses: 0,
            begun: 0,
        }
    }

    /// Ends the run where it takes more than `most_bytes` of memory itself; the `accesses` of its
    /// phases say how much of it was done by then.
    pub fn bound(&mut self, most_bytes: u64, accesses: impl Iterator<Item = u64>) {
        self.most_bytes = most_bytes;
        self.accesses = accesses.fold(0, u64::saturating_add);
    }

    /// What was counted before a phase, which begins with `mmap_miss`: the highest value of that
    /// counter is noted by phase.
    pub fn begin_phase(&mut self, mmap_miss: u16) -> Tally {
        self.tally.mmap_miss_max = mmap_miss;
        self.tally
    }

    /// Gives the turn to a task at `now_ns`, until something else comes first at `until_ns`. Its
    /// CPU is its own until `slice_ends_ns`.
    pub fn begin_turn(&mut self, now_ns: u64, until_ns: u64, slice_ends_ns: u64) {
        self.now_ns = now_ns;
        self.slice_ends_ns = slice_ends_ns;
        let arrives_ns = self.awaited_ns().map_or(u64::MAX, |done_ns| done_ns.saturating_sub(1));
        self.turn_ns = until_ns.min(arrives_ns);
    }

    /// Whether something else comes before what the task at work does next.
    pub fn turn_is_over(&self) -> bool {
        self.now_ns > self.turn_ns
    }

    /// Whether the task at work is as far ahead of its turn as accesses that take no fault may run:
    /// these change nothing that another task could see but that a page was accessed.
    pub fn is_far_ahead(&self) -> bool {
        self.now_ns > self.turn_ns.saturating_add(AHEAD_NS)
    }

    /// When something arrives that a task waits for, or may wait for.
    pub fn awaited_ns(&self) -> Option<u64> {
        self.next_done_ns.filter(|_| !self.waiting.is_empty())
    }

    /// Lets the task at work think for `think_ns`, up to the end of its slice. Returns how much of
    /// that is left.
    pub fn think(&mut self, think_ns: u64) -> u64 {
        let awaited_ns = self.awaited_ns().unwrap_or(u64::MAX);
        let until_ns = self.slice_ends_ns.min(awaited_ns);
        let now_ns = think_ns.min(until_ns.saturating_sub(self.now_ns));
        self.pass(now_ns);
        think_ns - now_ns
    }

    /// Notes that an access to `file` begins. Returns its number.
    pub fn begin_access(&mut self, file: FileId) -> u64 {
        let number = self.begun;
        self.log.about(file);
        self.log.access(number);
        self.begun += 1;
        self.tally.accesses += 1;
        self.pass(self.profile.cost.touch_ns);
        number
    }

    /// How many accesses have begun: what comes now belongs to none of them.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Refuses to take more memory than allowed: what a job needs shows only as it goes.
    ///
    /// # Errors
    /// When it does.
    pub fn check_held(&self, tables: &PageTables) -> Result<(), Error> {
        let held = self.memory.held_bytes() + tables.held_bytes();
        if held <= self.most_bytes {
            return Ok(());
        }
        let all = u128::from(held) * u128::from(self.accesses.max(1));
        let needed = (all / u128::from(self.begun.max(1))).max(held.into());
        Err(Error::TooLarge {
            needed_gib: u64::try_from(needed >> 30).unwrap_or(u64::MAX).saturating_add(1),
            most_gib: self.most_bytes >> 30,
        })
    }

    /// The time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Lets time pass. It ends after 584 years, which only a profile reaches that makes no sense.
    pub fn pass(&mut self, ns: u64) {
        self.now_ns = self.now_ns.saturating_add(ns);
    }

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
        let mut filled = window.start;
        loop {
            let next = layout.next(&self.memory.cache.file(open.file), &mut self.log);
            let Some(run) = next else { break };
            if run.start != filled {
                // What lies before pages that are cached is read before the rest is added.
                self.submit(open);
            }
            filled = run.end();
            if !self.add_folios(run, open, tables) {
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

    /// Adds the page `index` of `open`, where it is absent, and begins to read it. Nothing is done
    /// yet where the task has to pause.
    #[inline(never)]
    pub fn read_page(
        &mut self,
        index: PageIndex,
        open: &OpenFile,
        tables: &PageTables,
    ) -> Result<Option<Pause>, Error> {
        if let Some(pause) = self.make_room_for(index, open.file, tables)? {
            return Ok(Some(pause));
        }
        if self.memory.cache.file(open.file).folio(index).is_none() {
            self.add(open, FolioRun { start: index, order: Order(0), folios: 1, marked: None });
            self.submit(open);
        }
        Ok(None)
    }

    /// Waits until the folio of `file` that holds `index` is up to date: it is where its page is
    /// not being read.
    #[inline(never)]
    pub fn wait(&mut self, file: FileId, index: PageIndex) -> Option<Pause> {
        let mut arrival = self.devices.iter().filter_map(|device| device.arrival_ns(file, index));
        let arrival_ns = arrival.next()?;
        if !self.is_alone {
            return Some(Pause::Folio(file, index));
        }
        self.now_ns = self.now_ns.max(arrival_ns);
        self.unlock_arrived();
        None
    }

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
    fn make_room_for(
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
            self.wait_for_device();
        }
        Ok(None)
    }

    /// Unlocks what has arrived while nothing was waited for.
    pub fn arrivals(&mut self) {
        let has_arrived = self.next_done_ns.is_some_and(|done_ns| done_ns <= self.now_ns);
        if has_arrived && self.timing == Timing::Device {
            self.unlock_arrived();
        }
    }

    /// Lets everything arrive, where that is the timing.
    pub fn settle(&mut self) {
        if self.timing == Timing::Settled {
            while self.wait_for_device() {}
        }
    }

    /// Adds the folios of `run`, as far as there is room; `false` where there is not for all.
    ///
    /// Where memory is short the run is taken in parts: first what there is room for, as reclaim
    /// finds that on the list when it comes to the rest. Reclaim also finds up to date what arrived
    /// while the folios before were added.
    fn add_folios(&mut self, run: FolioRun, open: &OpenFile, tables: &PageTables) -> bool {
        let mut left = run;
        while left.folios > 0 {
            let part = left.first(self.folios_together(&left, tables));
            let fits = self.make_room(part.pages(), part.order.pages(), open.file, tables);
            let folios = part.folios.min(fits.0 >> run.order.0);
            if folios > 0 {
                self.add(open, part.first(folios));
            }
            if folios < part.folios {
                return false;
            }
            left = left.behind(folios);
            if left.folios > 0 {
                self.arrivals();
            }
        }
        true
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
        let page_ns = cost.add_page_ns.saturating_add(cost.add_folio_ns / pages);
        let added = until_ns / page_ns.max(1);
        let batches = added.saturating_add(1).div_ceil(BATCH.0).saturating_mul(BATCH.0);
        run.folios.min(batches / pages)
    }

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
        self.devices[open.device].ask(run);
    }

    /// Reclaims for `pages` more pages while a task is at `file`. Returns how many of them fit.
    fn make_room(
        &mut self,
        pages: PageCount,
        unit: u64,
        file: FileId,
        tables: &PageTables,
    ) -> PageCount {
        let (now_ns, log) = (self.now_ns, &mut self.log);
        let (fits, evicted) = self.memory.make_room(pages, PageCount(unit), now_ns, tables, log);
        self.tally.evicted_pages += evicted.0;
        self.log.about(file);
        fits
    }

    /// Begins to read what was asked for of `open`.
    fn submit(&mut self, open: &OpenFile) {
        if self.devices[open.device].submit(open.file, self.now_ns) {
            self.next_done_ns = self.devices.iter().filter_map(Device::next_done_ns).min();
            if let Some(done_ns) = self.awaited_ns() {
                self.turn_ns = self.turn_ns.min(done_ns.saturating_sub(1));
            }
        }
    }

    /// Lets arrive at `now_ns` what does so then.
    pub fn arrive(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.unlock_arrived();
    }

    /// Lets the next request of a device complete; `false` where none is under way.
    fn wait_for_device(&mut self) -> bool {
        let Some(done_ns) = self.next_done_ns else {
            return false;
        };
        self.now_ns = self.now_ns.max(done_ns);
        self.unlock_arrived();
        true
    }

    fn unlock_arrived(&mut self) {
        let mut arrived_ns = self.now_ns;
        for device in &mut self.devices {
            while let Some((run, at_ns)) = device.arrived(self.now_ns) {
                self.memory.cache.unlock(run.file, run.start, run.pages);
                self.waiting.arrived(run, at_ns);
                arrived_ns = arrived_ns.min(at_ns);
            }
        }
        self.waiting.something_arrived(arrived_ns);
        self.next_done_ns = self.devices.iter().filter_map(Device::next_done_ns).min();
    }
}
