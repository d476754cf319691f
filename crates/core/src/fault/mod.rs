//! One fault, as a state machine without I/O.

pub mod around;
pub mod lock;
pub mod map;
pub mod read;
mod step;
mod view;

use self::around::Mapped;
use self::lock::Io;
use crate::address::entries::MappedFile;
use crate::cache::Folio;
use crate::decision::{Decision, Lock, Log};
use crate::readahead::{Window, marked, sync};
use crate::rules::Rules;
use crate::units::{PageCount, PageIndex};

pub use self::step::{Access, Outcome, Step};
pub use self::view::View;

/// One fault. An engine asks for step after step, until [`Step::Done`]: each time for
/// [`Fault::step_ahead`], and where that has none for [`Fault::step_with`].
///
/// Mirrors `handle_mm_fault` and `filemap_fault` with the retries of the architecture's fault
/// handler, 6.12 and 6.18. Test: `tests/fault.rs`.
#[derive(Debug)]
pub struct Fault {
    index: PageIndex,
    access: Access,
    /// MADV_POPULATE_READ asked for it.
    populates: bool,
    lock: Lock,
    /// The retry that may not drop its lock again.
    tried: bool,
    tries: u32,
    /// Misses that this fault met: PGMAJFAULT events.
    misses: u32,
    /// Those of them that a retry met.
    retry_misses: u32,
    /// Pages that fault-around mapped.
    mapped: PageCount,
    /// This try met a miss.
    major: bool,
    /// This try dropped its lock.
    dropped: bool,
    /// This try found no folio to wait for, and reads its page by itself.
    read_alone: bool,
    /// Other tasks were at work between two steps.
    interrupted: bool,
    /// It has mapped its page as accessed, not only found it mapped.
    is_young: bool,
    /// It made a private copy.
    copied: bool,
    /// The window to be read from [`State::Read`] on.
    window: Option<Window>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begin,
    /// The lock was asked for. With it the page is looked up.
    Look,
    /// The window of a miss or of a mark is to be read now.
    Read,
    /// Readahead is done: the page should be there.
    Settle,
    /// The page is there, and was being read at the last step.
    Reading,
    /// The page's data has arrived.
    Arrived,
}

impl Fault {
    /// A fault on page `index` of the file.
    pub fn new(index: PageIndex, access: Access) -> Fault {
        Fault {
            index,
            access,
            populates: false,
            lock: Lock::Vma,
            tried: false,
            tries: 0,
            misses: 0,
            retry_misses: 0,
            mapped: PageCount(0),
            major: false,
            dropped: false,
            read_alone: false,
            interrupted: false,
            is_young: false,
            copied: false,
            window: None,
            state: State::Begin,
        }
    }

    /// A fault on page `index` that no access made: MADV_POPULATE_READ asks for it. It begins
    /// under `mmap_lock`, so its first retry may not drop that again, where that is not a new
    /// fault.
    ///
    /// Mirrors `faultin_page_range`, 6.12 and 6.18, and `faultin_vma_page_range`, 6.1 and 6.6.
    /// Test: `tests/fault.rs`.
    pub fn populating(index: PageIndex) -> Fault {
        let fault = Fault::new(index, Access::Read);
        Fault { populates: true, lock: Lock::Mmap, ..fault }
    }

    /// How often it has begun.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// PGMAJFAULT events so far.
    pub fn misses(&self) -> u32 {
        self.misses
    }

    /// Those of them that a retry met: it found its page gone.
    pub fn retry_misses(&self) -> u32 {
        self.retry_misses
    }

    /// Pages that fault-around has mapped so far: the time for them passes before the fault drops
    /// its last lock.
    pub fn mapped(&self) -> PageCount {
        self.mapped
    }

    /// The window that [`Step::Read`] asks for.
    ///
    /// # Panics
    /// Before a miss or a mark made one.
    pub fn window(&self) -> &Window {
        self.window.as_ref().expect("a miss or a mark made it")
    }

    /// Other tasks were at work since the last step.
    pub fn interrupted(&mut self) {
        self.interrupted = true;
    }

    /// Whether it has mapped its page as accessed: the access after it changes nothing then.
    pub fn is_young(&self) -> bool {
        self.is_young
    }

    /// Whether it made a private copy.
    pub fn copied(&self) -> bool {
        self.copied
    }

    /// Answers [`Step::Lock`] where the VMA's lock cannot be had, as somebody writes to the VMA or
    /// waits to: the next step asks for `mmap_lock`, which is waited for. It is the same try.
    ///
    /// Mirrors `lock_vma_under_rcu` and what its callers do without the lock, 6.12 and 6.18.
    /// Test: `tests/fault.rs`.
    ///
    /// # Panics
    /// When the last step did not ask for the VMA's lock.
    pub fn refused(&mut self) {
        assert!(self.state == State::Look && self.lock == Lock::Vma, "it was asked for");
        self.tries -= 1;
        self.lock = Lock::Mmap;
        self.state = State::Begin;
    }

    /// [`Fault::step_ahead`] and [`Fault::step_with`] in one, for tests. [`Step::Lock`] may be
    /// answered by [`Fault::refused`]; a step that is followed by the next one was carried out.
    pub fn step<C: MappedFile, L: Log>(&mut self, view: &mut View<'_, C, L>) -> Step {
        match self.step_ahead(false, &view.limits.rules, view.log) {
            Some(step) => step,
            None => self.step_with(view),
        }
    }

    /// The next step where that depends on nothing that a view shows; `None` where it does, and is
    /// that of [`Fault::step_with`]. A page that was being read at the last step need not be looked
    /// up again where it is `undisturbed`: nothing was done since then but what that step asked
    /// for, and nothing has arrived.
    #[inline(always)]
    pub fn step_ahead(
        &mut self,
        undisturbed: bool,
        rules: &Rules,
        log: &mut impl Log,
    ) -> Option<Step> {
        match self.state {
            State::Begin => Some(self.begin(rules)),
            State::Read => Some(self.read_window()),
            State::Reading if undisturbed => Some(self.wait(rules, log)),
            State::Arrived if self.dropped => Some(self.retry(rules)),
            State::Look | State::Settle | State::Reading | State::Arrived => None,
        }
    }

    /// The next step, where [`Fault::step_ahead`] has none.
    ///
    /// # Panics
    /// Where that has one.
    // Within its callers it would take registers from what they do at every step.
    #[inline(never)]
    pub fn step_with<C: MappedFile, L: Log>(&mut self, view: &mut View<'_, C, L>) -> Step {
        match self.state {
            State::Look => self.look(view),
            State::Arrived => self.arrived(view),
            State::Settle | State::Reading => {
                self.state = State::Settle;
                self.settle(view.cache.folio(self.index), view)
            }
            State::Begin | State::Read => unreachable!("that step depends on no view"),
        }
    }

    fn begin(&mut self, rules: &Rules) -> Step {
        if self.tries == 0 && lock::of_access(rules) == Lock::Mmap {
            self.lock = Lock::Mmap;
        }
        self.state = State::Look;
        self.tries += 1;
        self.major = false;
        self.dropped = false;
        self.read_alone = false;
        Step::Lock(self.lock)
    }

    fn look<C: MappedFile, L: Log>(&mut self, view: &mut View<'_, C, L>) -> Step {
        // Without locks of VMAs the faults of accesses alone are told by theirs.
        if !self.populates || lock::of_access(&view.limits.rules) == Lock::Vma {
            view.log.record(Decision::Locked { lock: self.lock });
        }
        if self.interrupted && self.is_served(view) {
            return self.done(view);
        }
        let around = self.map_around(view);
        if around.reached {
            return self.done(view);
        }
        if !lock::looks_up(self.lock, &view.limits.rules) {
            return self.hand_over(view);
        }
        // What fault-around saw is still so.
        let found = if around.absent { None } else { view.cache.folio(self.index) };
        match self.look_up(found, view) {
            Some(step) => step,
            None if self.state == State::Settle => self.settle(found, view),
            None => self.read_window(),
        }
    }

    /// The same try goes on under `mmap_lock`, from the beginning.
    fn hand_over<C, L: Log>(&mut self, view: &mut View<'_, C, L>) -> Step {
        view.log.record(Decision::Dropped { lock: self.lock });
        self.tries -= 1;
        self.lock = Lock::Mmap;
        self.state = State::Begin;
        Step::Unlock
    }

    /// Goes on with the folio that was found, or with none.
    fn settle<C: MappedFile, L: Log>(
        &mut self,
        found: Option<Folio>,
        view: &mut View<'_, C, L>,
    ) -> Step {
        match found {
            // The single page is created before the lock goes, and waited for after.
            None => self.read_page(),
            Some(folio) if folio.locked => self.wait(&view.limits.rules, view.log),
            Some(_) if self.dropped => self.retry(&view.limits.rules),
            Some(folio) => self.finish(folio, view),
        }
    }

    /// What was waited for with the lock held is there, or gone.
    fn arrived<C: MappedFile, L: Log>(&mut self, view: &mut View<'_, C, L>) -> Step {
        let Some(folio) = view.cache.folio(self.index) else {
            return self.read_page();
        };
        self.finish(folio, view)
    }

    fn read_window(&mut self) -> Step {
        self.state = State::Settle;
        Step::Read
    }

    fn read_page(&mut self) -> Step {
        self.state = State::Reading;
        self.read_alone = true;
        Step::ReadPage(self.index)
    }

    /// Waits for the page, which is being read, once the lock is dropped.
    fn wait(&mut self, rules: &Rules, log: &mut impl Log) -> Step {
        self.state = State::Reading;
        if let Some(step) = self.drop_lock(Io::Wait, rules, log) {
            return step;
        }
        self.state = State::Arrived;
        log.record(Decision::Waited { index: self.index });
        Step::Wait(self.index)
    }

    fn finish<C: MappedFile, L: Log>(&mut self, folio: Folio, view: &mut View<'_, C, L>) -> Step {
        self.map(folio, view);
        self.done(view)
    }

    /// Whether another task has mapped the page since the access, or copied it where that writes:
    /// an entry that is there needs nothing more.
    fn is_served<C: MappedFile, L: Log>(&self, view: &View<'_, C, L>) -> bool {
        let (is_mapped, is_copied) = view.cache.entry(self.index);
        is_copied || is_mapped && self.access == Access::Read
    }

    fn map_around<C: MappedFile, L: Log>(&mut self, view: &mut View<'_, C, L>) -> Mapped {
        if self.access != Access::Read || view.limits.fault_around.0 <= 1 {
            return Mapped::NOTHING;
        }
        let around = around::map_around(self.index, self.tried, view);
        self.mapped += around.pages;
        self.is_young |= around.young;
        around
    }

    /// Decides on readahead, by what was found in the cache.
    fn look_up<C: MappedFile, L: Log>(
        &mut self,
        found: Option<Folio>,
        view: &mut View<'_, C, L>,
    ) -> Option<Step> {
        view.log.record(Decision::Lookup {
            index: self.index,
            hit: found.is_some(),
            tried: self.tried,
            mmap_miss: view.ra.mmap_miss,
        });
        self.state = State::Settle;
        let View { limits, vma, ra, cache, log, .. } = view;
        let window = match found {
            Some(_) if self.tried => return None,
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
            self.state = State::Read;
        }
        self.drop_lock(Io::Read, &limits.rules, *log)
    }

    /// Drops the lock before I/O, unless that was done, or this is the retry that may not, or the
    /// kernel keeps it.
    fn drop_lock(&mut self, io: Io, rules: &Rules, log: &mut impl Log) -> Option<Step> {
        if self.dropped || self.tried || !lock::drops(io, rules) {
            return None;
        }
        self.dropped = true;
        log.record(Decision::Dropped { lock: self.lock });
        Some(Step::Unlock)
    }

    /// Begins again.
    fn retry(&mut self, rules: &Rules) -> Step {
        if !(self.populates && rules.populating_begins_anew) {
            self.tried = lock::is_last(self.tried, self.major, self.lock);
        }
        self.lock = lock::of_retry(self.lock, self.read_alone, rules.series);
        self.begin(rules)
    }

    /// Maps the folio found, whole where the kernel does so.
    fn map<C: MappedFile, L: Log>(&mut self, folio: Folio, view: &mut View<'_, C, L>) {
        if self.access == Access::WritePrivate {
            view.tables.install_for_copy(view.vma.vpn(self.index), view.limits.arch.pte_entries);
            view.cache.copy(self.index);
            self.copied = true;
            view.log.record(Decision::Copied { index: self.index });
            return;
        }
        map::map_found(self.index, folio, view);
    }

    fn done<C, L: Log>(&self, view: &mut View<'_, C, L>) -> Step {
        let outcome = Outcome { major: self.major || self.tried, tries: self.tries };
        view.log.record(Decision::Served {
            index: self.index,
            major: outcome.major,
            tries: outcome.tries,
        });
        Step::Done(outcome)
    }
}
