//! One fault, as a state machine without I/O.

pub mod around;
pub mod lock;
pub mod map;
pub mod read;
mod step;
mod view;

use self::around::AroundResult;
use self::lock::LockedIo;
use crate::address::entries::MappedFile;
use crate::cache::Folio;
use crate::decision::{Decision, Lock, Log};
use crate::readahead::{Window, marked, sync};
use crate::rules::Rules;
use crate::units::{PageCount, PageIndex};

pub use self::step::{AccessKind, FaultResult, Step};
pub use self::view::View;

/// One fault. An engine calls [`Fault::step_ahead`], or [`Fault::step_with`] if that returns
/// `None`, until [`Step::Done`].
///
/// Mirrors `handle_mm_fault` and `filemap_fault` with the retries of the architecture's fault
/// handler, 6.12 and 6.18. Test: `tests/fault.rs`.
#[derive(Debug)]
pub struct Fault {
    index: PageIndex,
    access: AccessKind,
    /// It was requested by MADV_POPULATE_READ.
    populates: bool,
    lock: Lock,
    /// It is a retry that may not drop its lock again (`FAULT_FLAG_TRIED`).
    is_tried: bool,
    tries: u32,
    /// Misses of this fault: PGMAJFAULT events.
    misses: u32,
    /// Misses of retries.
    retry_misses: u32,
    /// Pages that fault-around mapped.
    mapped: PageCount,
    /// This try had a miss.
    major: bool,
    /// This try dropped its lock.
    has_dropped_lock: bool,
    /// This try found no folio to wait for, and reads its page alone.
    read_alone: bool,
    /// Other tasks ran between two steps.
    was_interrupted: bool,
    /// It mapped its page as accessed, rather than finding it mapped.
    is_young: bool,
    /// It made the private copy: two tasks may write to a page at the same time.
    has_copied: bool,
    /// The window to be read from [`FaultState::Read`] on.
    window: Option<Window>,
    state: FaultState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultState {
    Begin,
    /// The lock was requested; next the page is looked up.
    LookUp,
    /// The window of a miss or of a mark is read next.
    Read,
    /// Readahead is done; the page should be cached.
    Resolve,
    /// The page is cached, and was being read at the last step.
    Reading,
    /// The page's data has arrived.
    Arrived,
}

impl Fault {
    /// A fault on page `index` of the file.
    pub fn new(index: PageIndex, access: AccessKind) -> Fault {
        Fault {
            index,
            access,
            populates: false,
            lock: Lock::Vma,
            is_tried: false,
            tries: 0,
            misses: 0,
            retry_misses: 0,
            mapped: PageCount(0),
            major: false,
            has_dropped_lock: false,
            read_alone: false,
            was_interrupted: false,
            is_young: false,
            has_copied: false,
            window: None,
            state: FaultState::Begin,
        }
    }

    /// A fault on page `index` requested by MADV_POPULATE_READ. It starts under `mmap_lock`, so its
    /// first retry may not drop the lock again, unless the kernel starts over with a new fault.
    ///
    /// Mirrors `faultin_page_range`, 6.12 and 6.18, and `faultin_vma_page_range`, 6.1 and 6.6.
    /// Test: `tests/fault.rs`.
    pub fn populating(index: PageIndex) -> Fault {
        let fault = Fault::new(index, AccessKind::Read);
        Fault { populates: true, lock: Lock::Mmap, ..fault }
    }

    /// Number of tries.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// PGMAJFAULT events so far.
    pub fn misses(&self) -> u32 {
        self.misses
    }

    /// PGMAJFAULT events of retries, whose page was gone.
    pub fn retry_misses(&self) -> u32 {
        self.retry_misses
    }

    /// Pages mapped by fault-around; their cost is charged before the fault drops its last lock.
    pub fn mapped(&self) -> PageCount {
        self.mapped
    }

    /// The window that [`Step::Read`] asks for.
    ///
    /// # Panics
    /// If there was no miss or mark yet.
    pub fn window(&self) -> &Window {
        self.window.as_ref().expect("a miss or a mark made it")
    }

    /// Records that other tasks ran since the last step.
    pub fn set_interrupted(&mut self) {
        self.was_interrupted = true;
    }

    /// Whether it mapped its page as accessed, so that the access itself changes nothing.
    pub fn is_young(&self) -> bool {
        self.is_young
    }

    /// Whether it made a private copy.
    pub fn has_copied(&self) -> bool {
        self.has_copied
    }

    /// Answers [`Step::Lock`] if the VMA lock cannot be taken because of a writer: the next step
    /// asks for `mmap_lock`, which is waited for. This is still the same try.
    ///
    /// Mirrors `lock_vma_under_rcu` and what its callers do without the lock, 6.12 and 6.18.
    /// Test: `tests/fault.rs`.
    ///
    /// # Panics
    /// If the last step did not request the VMA lock.
    pub fn on_lock_refused(&mut self) {
        assert!(self.state == FaultState::LookUp && self.lock == Lock::Vma, "it was asked for");
        self.tries -= 1;
        self.lock = Lock::Mmap;
        self.state = FaultState::Begin;
    }

    /// [`Fault::step_ahead`] and [`Fault::step_with`] combined, for tests. [`Step::Lock`] may be
    /// answered by [`Fault::on_lock_refused`]; any other step has to be carried out before the next
    /// call.
    pub fn step<C: MappedFile, L: Log>(&mut self, view: &mut View<'_, C, L>) -> Step {
        match self.step_ahead(false, &view.limits.rules, view.log) {
            Some(step) => step,
            None => self.step_with(view),
        }
    }

    /// The next step, if it does not depend on the view; otherwise `None`, and [`Fault::step_with`]
    /// has it. A page that was being read at the last step need not be looked up again if the fault
    /// is `undisturbed`: only that step was carried out since, and no I/O has completed.
    #[inline(always)]
    pub fn step_ahead(
        &mut self,
        undisturbed: bool,
        rules: &Rules,
        log: &mut impl Log,
    ) -> Option<Step> {
        match self.state {
            FaultState::Begin => Some(self.begin(rules)),
            FaultState::Read => Some(self.read_window()),
            FaultState::Reading if undisturbed => Some(self.wait(rules, log)),
            FaultState::Arrived if self.has_dropped_lock => Some(self.retry(rules)),
            FaultState::LookUp
            | FaultState::Resolve
            | FaultState::Reading
            | FaultState::Arrived => None,
        }
    }

    /// The next step, if [`Fault::step_ahead`] returned `None`.
    ///
    /// # Panics
    /// If that has a step.
    // Out of line: inlining costs registers on the path of every step.
    #[inline(never)]
    pub fn step_with<C: MappedFile, L: Log>(&mut self, view: &mut View<'_, C, L>) -> Step {
        match self.state {
            FaultState::LookUp => self.begin_locked(view),
            FaultState::Arrived => self.arrived(view),
            FaultState::Resolve | FaultState::Reading => {
                self.state = FaultState::Resolve;
                self.resolve(view.cache.folio(self.index), view)
            }
            FaultState::Begin | FaultState::Read => unreachable!("that step depends on no view"),
        }
    }

    fn begin(&mut self, rules: &Rules) -> Step {
        if self.tries == 0 && lock::access_lock(rules) == Lock::Mmap {
            self.lock = Lock::Mmap;
        }
        self.state = FaultState::LookUp;
        self.tries += 1;
        self.major = false;
        self.has_dropped_lock = false;
        self.read_alone = false;
        Step::Lock(self.lock)
    }

    fn begin_locked<C: MappedFile, L: Log>(&mut self, view: &mut View<'_, C, L>) -> Step {
        // Kernels without VMA locks only report the lock of faults caused by accesses.
        if !self.populates || lock::access_lock(&view.limits.rules) == Lock::Vma {
            view.log.record(Decision::Locked { lock: self.lock });
        }
        if self.was_interrupted && self.is_already_mapped(view) {
            return self.done(view);
        }
        let around = self.map_around(view);
        if around.reached {
            return self.done(view);
        }
        if !lock::looks_up(self.lock, &view.limits.rules) {
            return self.hand_over(view);
        }
        // The cache has not changed since fault-around.
        let found = if around.absent { None } else { view.cache.folio(self.index) };
        match self.look_up(found, view) {
            Some(step) => step,
            None if self.state == FaultState::Resolve => self.resolve(found, view),
            None => self.read_window(),
        }
    }

    /// Restarts the same try under `mmap_lock`.
    fn hand_over<C, L: Log>(&mut self, view: &mut View<'_, C, L>) -> Step {
        view.log.record(Decision::Dropped { lock: self.lock });
        self.tries -= 1;
        self.lock = Lock::Mmap;
        self.state = FaultState::Begin;
        Step::Unlock
    }

    /// Continues with the folio found, or without one.
    fn resolve<C: MappedFile, L: Log>(
        &mut self,
        found: Option<Folio>,
        view: &mut View<'_, C, L>,
    ) -> Step {
        match found {
            // The single page is added before the lock is dropped, and waited for afterwards.
            None => self.read_page(),
            Some(folio) if folio.locked => self.wait(&view.limits.rules, view.log),
            Some(_) if self.has_dropped_lock => self.retry(&view.limits.rules),
            Some(folio) => self.finish(folio, view),
        }
    }

    /// The page that was waited for under the lock has arrived, or is gone.
    fn arrived<C: MappedFile, L: Log>(&mut self, view: &mut View<'_, C, L>) -> Step {
        let Some(folio) = view.cache.folio(self.index) else {
            return self.read_page();
        };
        self.finish(folio, view)
    }

    fn read_window(&mut self) -> Step {
        self.state = FaultState::Resolve;
        Step::Read
    }

    fn read_page(&mut self) -> Step {
        self.state = FaultState::Reading;
        self.read_alone = true;
        Step::ReadPage(self.index)
    }

    /// Waits for the page being read, after dropping the lock.
    fn wait(&mut self, rules: &Rules, log: &mut impl Log) -> Step {
        self.state = FaultState::Reading;
        if let Some(step) = self.drop_lock(LockedIo::Wait, rules, log) {
            return step;
        }
        self.state = FaultState::Arrived;
        log.record(Decision::Waited { index: self.index });
        Step::Wait(self.index)
    }

    fn finish<C: MappedFile, L: Log>(&mut self, folio: Folio, view: &mut View<'_, C, L>) -> Step {
        self.map(folio, view);
        self.done(view)
    }

    /// Whether another task has already mapped the page, or copied it for a write: nothing is left
    /// to do.
    fn is_already_mapped<C: MappedFile, L: Log>(&self, view: &View<'_, C, L>) -> bool {
        let (is_mapped, is_copied) = view.cache.entry(self.index);
        is_copied || is_mapped && self.access == AccessKind::Read
    }

    fn map_around<C: MappedFile, L: Log>(&mut self, view: &mut View<'_, C, L>) -> AroundResult {
        if self.access != AccessKind::Read || view.limits.fault_around.0 <= 1 {
            return AroundResult::NOTHING;
        }
        let around = around::map_around(self.index, self.is_tried, view);
        self.mapped += around.pages;
        self.is_young |= around.young;
        around
    }

    /// Decides on readahead for a hit or a miss.
    fn look_up<C: MappedFile, L: Log>(
        &mut self,
        found: Option<Folio>,
        view: &mut View<'_, C, L>,
    ) -> Option<Step> {
        view.log.record(Decision::Lookup {
            index: self.index,
            hit: found.is_some(),
            tried: self.is_tried,
            mmap_miss: view.ra.mmap_miss,
        });
        self.state = FaultState::Resolve;
        let View { limits, vma, ra, cache, log, .. } = view;
        let window = match found {
            Some(_) if self.is_tried => return None,
            Some(folio) => {
                let hit = marked::on_fault_hit(self.index, folio, vma, limits, ra, *cache, *log)?;
                hit.window
            }
            None => {
                self.major = true;
                self.misses += 1;
                self.retry_misses += u32::from(self.tries > 1);
                Some(sync::on_miss(self.index, vma, limits, ra, *cache, *log)?)
            }
        };
        if window.is_some() {
            self.window = window;
            self.state = FaultState::Read;
        }
        self.drop_lock(LockedIo::Read, &limits.rules, *log)
    }

    /// Drops the lock before I/O, unless it was dropped, this is the last retry, or the kernel
    /// keeps it.
    fn drop_lock(&mut self, io: LockedIo, rules: &Rules, log: &mut impl Log) -> Option<Step> {
        if self.has_dropped_lock || self.is_tried || !lock::drops_lock(io, rules) {
            return None;
        }
        self.has_dropped_lock = true;
        log.record(Decision::Dropped { lock: self.lock });
        Some(Step::Unlock)
    }

    /// Retries the fault.
    fn retry(&mut self, rules: &Rules) -> Step {
        if !(self.populates && rules.populating_begins_anew) {
            self.is_tried = lock::is_last(self.is_tried, self.major, self.lock);
        }
        self.lock = lock::retry_lock(self.lock, self.read_alone, rules.series);
        self.begin(rules)
    }

    /// Maps the folio found, as a whole if the kernel does so.
    fn map<C: MappedFile, L: Log>(&mut self, folio: Folio, view: &mut View<'_, C, L>) {
        if self.access == AccessKind::WritePrivate {
            view.tables.install_for_copy(view.vma.vpn(self.index), view.limits.arch.pte_entries);
            self.has_copied |= view.cache.copy(self.index);
            view.log.record(Decision::Copied { index: self.index });
            return;
        }
        map::map_found(self.index, folio, view);
    }

    fn done<C, L: Log>(&self, view: &mut View<'_, C, L>) -> Step {
        let outcome = FaultResult { major: self.major || self.is_tried, tries: self.tries };
        view.log.record(Decision::Served {
            index: self.index,
            major: outcome.major,
            tries: outcome.tries,
        });
        Step::Done(outcome)
    }
}
