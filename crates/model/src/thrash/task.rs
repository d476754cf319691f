//! A task, and what it has under way.

use filemap_core::cache::FolioRun;
use filemap_core::decision::Lock;
use filemap_core::fault::{Fault, Step};
use filemap_core::lru::direct::Direct;
use filemap_core::readahead::Window;
use filemap_core::readahead::layout::Layout;
use filemap_core::units::{PageCount, PageIndex};

use super::waits::Cause;

/// What a turn of a task comes to.
#[derive(Clone, Copy, Debug)]
pub enum Flow {
    /// It goes on at once.
    Goes,
    /// It goes on after so long, which is for this.
    Takes(u64, Cause),
    /// It goes on when all other CPUs have answered: entries were taken away.
    Tells(Cause),
    /// It gives its CPU up, and is woken.
    Waits(Cause),
    /// It sleeps for so long.
    Sleeps(u64, Cause),
}

/// What a task is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It reads a file.
    Reader,
    /// It changes the protection of a mapping.
    Writer,
    /// It computes.
    Noise,
}

/// Where a reader or a writer is in its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It wants `mmap_lock` to write, and has not asked.
    Begin,
    /// It was woken to ask again.
    Again,
    /// It has it.
    Has,
    /// A writer waits for faults inside of its VMA, or has waited.
    Marked,
    /// What it does under the lock is done.
    Release,
    /// A reader touches its pages.
    Touch,
    /// A reader drops its pages from a mapping that stays.
    Drops,
    /// A reader has cleared its page tables under the lock that it downgraded, or a writer has
    /// changed its own: the other CPUs do not know yet.
    Zapping,
    /// They know.
    Zapped,
}

/// A thread.
#[derive(Debug)]
pub struct Task {
    pub kind: Kind,
    pub stage: Stage,
    /// A reader maps next, and does not unmap.
    pub is_unmapped: bool,
    /// The next page to be touched.
    pub page: u64,
    pub cpu: Option<usize>,
    pub slice_ends_ns: u64,
    /// What it waits for, since when.
    pub waits: Option<(Cause, u64)>,
    /// What it does on its CPU until its next turn.
    pub busy: Option<Busy>,
    /// The page whose data it waits for.
    pub awaits: Option<PageIndex>,
    /// The folio whose data it waited for and has come: it refers to it until it runs, which keeps
    /// it from reclaim.
    pub refers: Option<(PageIndex, PageCount)>,
    /// Pages that it charged above `memory.high`.
    pub owed: u64,
    pub fault: Option<FaultUnderWay>,
    pub window: Option<WindowUnderWay>,
    pub charge: Option<Charge>,
    pub repay: Option<Repay>,
    pub reclaim: Option<Reclaiming>,
    /// Whether the last charge was met.
    pub charged: Option<bool>,
    /// Pages that the last reclaim evicted.
    pub evicted: Option<u64>,
}

/// What takes the time of a task on a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Busy {
    pub cause: Cause,
    pub from_ns: u64,
    /// From then on it waits for the lists' lock.
    pub spins_from_ns: u64,
    pub to_ns: u64,
}

impl Task {
    /// Whether it gives its CPU up to others where its slice is over: in user mode, and in reclaim.
    ///
    /// As with `PREEMPT_VOLUNTARY`, where only `cond_resched` lets others run: a window is added
    /// and filled at a stretch.
    pub fn may_yield(&self) -> bool {
        self.reclaim.is_some() || self.fault.is_none()
    }

    /// One that has not begun.
    pub fn new(kind: Kind) -> Task {
        Task {
            kind,
            stage: Stage::Begin,
            is_unmapped: true,
            page: 0,
            cpu: None,
            slice_ends_ns: 0,
            waits: None,
            busy: None,
            awaits: None,
            refers: None,
            owed: 0,
            fault: None,
            window: None,
            charge: None,
            repay: None,
            reclaim: None,
            charged: None,
            evicted: None,
        }
    }
}

/// A fault under way.
#[derive(Debug)]
pub struct FaultUnderWay {
    pub fault: Fault,
    /// What its last step asked for and is not carried out.
    pub asked: Option<Step>,
    /// The time for that has passed.
    pub is_paid: bool,
    /// The lock that it has.
    pub held: Option<Lock>,
    pub has_dropped: bool,
    /// The next lock is that of a retry.
    pub begins_again: bool,
}

/// A window under way.
#[derive(Debug)]
pub struct WindowUnderWay {
    pub layout: Layout<Window>,
    /// What is left to be added of a run.
    pub left: Option<FolioRun>,
    /// What was added and is not read: no cached page lies between.
    pub added: Vec<FolioRun>,
    /// The folio of the mark, which the task holds meanwhile.
    pub held: Option<(PageIndex, PageCount)>,
    pub stage: WindowStage,
    /// It is read under `mmap_lock`.
    pub under_mmap_lock: bool,
}

/// Where a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowStage {
    /// Its pages are added.
    Adding,
    /// A page is being charged.
    Charging,
    /// All that can be is added, or all before a page that is cached already.
    Added,
    /// What was added is filled.
    Filled,
}

/// A charge under way.
#[derive(Clone, Copy, Debug)]
pub struct Charge {
    pub pages: u64,
    /// It gives up early (`__GFP_NORETRY`).
    pub gives_up: bool,
    pub retries: u32,
    pub has_drained: bool,
    pub reclaims: bool,
}

/// Repaying under way.
#[derive(Clone, Copy, Debug)]
pub struct Repay {
    pub pages: u64,
    pub retries: u32,
    pub is_again: bool,
    pub is_inside: bool,
    pub reclaims: bool,
}

/// Reclaim under way.
#[derive(Debug)]
pub struct Reclaiming {
    pub reclaim: Direct,
    /// Entries were taken away of which the other CPUs do not know.
    pub tells: bool,
    /// Pages that were evicted and are being freed.
    pub freeing: u64,
    /// For what.
    pub cause: Cause,
}
