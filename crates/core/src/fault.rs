//! One fault, as a state machine without I/O.

use crate::cache::{Folio, PageCache};
use crate::decision::{Decision, Lock, Log};
use crate::fault_around;
use crate::marked;
use crate::page_table::{self, PageTables};
use crate::readahead::{Limits, ReadaheadState, Window};
use crate::sync;
use crate::units::PageIndex;
use crate::vma::Vma;

/// What the faulting instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads, or fetches an instruction.
    Read,
    /// Writes to a private mapping.
    WritePrivate,
}

/// What the caller has to do before the fault goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Take this lock.
    Lock(Lock),
    /// Drop the lock that was taken.
    Unlock,
    /// Lay out this window, add its folios and begin to read them.
    Read(Window),
    /// Add a folio of one base page, if it is still absent, and begin to read it.
    ReadPage(PageIndex),
    /// Wait until the folio that holds the page is up to date.
    Wait(PageIndex),
    /// The fault was served; the lock that it still holds is to be dropped.
    Done(Outcome),
}

/// How a fault was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Counts as major in the process's own accounting: the last try missed the cache, or was
    /// the retry of one that missed.
    pub major: bool,
    /// How often it began.
    pub tries: u32,
}

/// What a step of a fault looks at and changes. The caller owns it between steps.
#[derive(Debug)]
pub struct View<'a, C, L> {
    /// Bounds of readahead and fault-around.
    pub limits: &'a Limits,
    /// The VMA that the fault lies in.
    pub vma: &'a Vma,
    /// Readahead state of the open file.
    pub ra: &'a mut ReadaheadState,
    /// Page tables of the process.
    pub tables: &'a mut PageTables,
    /// The page cache of the file.
    pub cache: &'a mut C,
    /// Where decisions go.
    pub log: &'a mut L,
}

/// One fault. [`Fault::step`] is called until it returns [`Step::Done`].
///
/// Mirrors `handle_mm_fault` and `filemap_fault` with the retries of the architecture's fault
/// handler, 6.12 and 6.18. Test: `tests/fault.rs`.
#[derive(Debug)]
pub struct Fault {
    index: PageIndex,
    access: Access,
    lock: Lock,
    /// The retry that may not drop its lock again.
    tried: bool,
    tries: u32,
    /// Misses that this fault met: PGMAJFAULT events.
    misses: u32,
    /// This try met a miss.
    major: bool,
    /// This try dropped its lock.
    dropped: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begin,
    Look,
    /// The window of a miss or of a mark, to be read now.
    Read(Window),
    /// Readahead is done: the page should be there.
    Settle,
    /// The page's data has arrived.
    Arrived,
}

impl Fault {
    /// A fault on page `index` of the file.
    pub fn new(index: PageIndex, access: Access) -> Fault {
        Fault {
            index,
            access,
            lock: Lock::Vma,
            tried: false,
            tries: 0,
            misses: 0,
            major: false,
            dropped: false,
            state: State::Begin,
        }
    }

    /// How often it has begun.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// PGMAJFAULT events so far.
    pub fn misses(&self) -> u32 {
        self.misses
    }

    /// Goes on until the caller has to do something.
    pub fn step<C: PageCache, L: Log>(&mut self, view: &mut View<'_, C, L>) -> Step {
        loop {
            match self.state {
                State::Begin => {
                    self.state = State::Look;
                    self.tries += 1;
                    self.major = false;
                    self.dropped = false;
                    view.log.record(Decision::Locked(self.lock));
                    return Step::Lock(self.lock);
                }
                State::Look => {
                    if self.maps_around(view) {
                        return self.done(view);
                    }
                    if let Some(step) = self.look_up(view) {
                        return step;
                    }
                }
                State::Read(window) => {
                    self.state = State::Settle;
                    return Step::Read(window);
                }
                State::Settle => match view.cache.folio(self.index) {
                    None => {
                        // The single page is created before the lock goes, and waited for after.
                        self.state = State::Settle;
                        return Step::ReadPage(self.index);
                    }
                    Some(folio) if folio.locked => {
                        if let Some(step) = self.drop_lock(view) {
                            return step;
                        }
                        self.state = State::Arrived;
                        view.log.record(Decision::Waited { index: self.index });
                        return Step::Wait(self.index);
                    }
                    Some(_) => self.state = State::Arrived,
                },
                State::Arrived => {
                    if self.dropped {
                        self.retry();
                        continue;
                    }
                    let Some(folio) = view.cache.folio(self.index) else {
                        self.state = State::Settle;
                        continue;
                    };
                    self.map(folio, view);
                    return self.done(view);
                }
            }
        }
    }

    fn maps_around<C: PageCache, L: Log>(&self, view: &mut View<'_, C, L>) -> bool {
        self.access == Access::Read
            && view.limits.fault_around.0 > 1
            && fault_around::map_around(self.index, self.tried, view)
    }

    /// Looks the page up, and decides on readahead.
    fn look_up<C: PageCache, L: Log>(&mut self, view: &mut View<'_, C, L>) -> Option<Step> {
        let found = view.cache.folio(self.index);
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
                Some(sync::on_miss(self.index, vma, limits, ra, *cache, *log)?)
            }
        };
        if let Some(window) = window {
            self.state = State::Read(window);
        }
        self.drop_lock(view)
    }

    /// Drops the lock before I/O, unless that was done, or this is the retry that may not.
    fn drop_lock<C, L: Log>(&mut self, view: &mut View<'_, C, L>) -> Option<Step> {
        if self.dropped || self.tried {
            return None;
        }
        self.dropped = true;
        view.log.record(Decision::Dropped(self.lock));
        Some(Step::Unlock)
    }

    /// Begins again, under `mmap_lock`. The retry of a miss, and any after the second try, may
    /// not drop the lock again.
    fn retry(&mut self) {
        self.tried = self.tried || self.major || self.lock == Lock::Mmap;
        self.lock = Lock::Mmap;
        self.state = State::Begin;
    }

    /// Maps the folio found, whole where the kernel does so.
    fn map<C: PageCache, L: Log>(&self, folio: Folio, view: &mut View<'_, C, L>) {
        if self.access == Access::WritePrivate {
            view.cache.copy(self.index);
            view.log.record(Decision::Copied { index: self.index });
            return;
        }
        page_table::map_found(self.index, folio, view);
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
