//! What all tasks share: the clock, the devices and the memory.

mod arriving;
mod memory_budget;
mod owing;
mod pins;
mod reading;
mod reclaiming;

use filemap_core::address::page_table::PageTables;
use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;

use self::owing::Debt;
use self::pins::{Pin, Why};
use self::reading::WindowUnderWay;
use self::reclaiming::Reclaiming;
use crate::Error;
use crate::device::Device;
use crate::journal::Journal;
use crate::memory::Memory;
use crate::open::OpenFile;
use crate::per_task::PerTask;
use crate::profile::Profile;
use crate::tally::Tally;
use crate::waiting::Waiting;

/// When what is read arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// As the profile's device delivers it.
    #[default]
    Device,
    /// Within an access only what it waits for, and everything before the next. What a program
    /// meets then depends on no device, so another engine can be compared line by line.
    Settled,
    /// All that is asked for of a window at once, before the access goes on: no device is faster.
    /// What a kernel meets within an access lies between this and [`Timing::Settled`].
    Prompt,
}

/// The device of files with blocks; the other one fills holes.
pub const DISK: usize = 0;
pub const HOLES: usize = 1;

/// How far tasks may run ahead of each other while they take no fault: about the time of one. They
/// would take turns at each access otherwise, which would take most of the model's time.
const AHEAD_NS: u64 = 1_000;

/// How often tasks that spin look whether what they spin for has come, where each of them spins for
/// what another does.
const SPIN_NS: u64 = 200;

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
    /// Folios that tasks refer to while they do not run.
    pins: Vec<Pin>,
    /// What each task owes above `memory.high`.
    debts: Vec<Debt>,
    /// Windows whose tasks have paused.
    windows: PerTask<WindowUnderWay>,
    /// Reclaim in which tasks have paused.
    reclaims: PerTask<Reclaiming>,
    /// Whether only one task is left, which then waits by letting the time pass.
    pub is_alone: bool,
    /// The task at work.
    pub task: usize,
    /// Whether the task that has `mmap_lock` of its process to write has a CPU.
    pub holder_runs: bool,
    /// When its time is over: it ends with the access that it is at then.
    pub ends_ns: u64,
    /// How long the task at work has reclaimed in its turn.
    pub reclaimed_ns: u64,
    /// The time of the task at work.
    now_ns: u64,
    /// Up to when it may go on before something else comes first.
    until_ns: u64,
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
            pins: Vec::new(),
            debts: Vec::new(),
            windows: PerTask::default(),
            reclaims: PerTask::default(),
            is_alone: true,
            task: 0,
            holder_runs: false,
            ends_ns: u64::MAX,
            reclaimed_ns: 0,
            now_ns: 0,
            until_ns: u64::MAX,
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

    /// Gives the turn to task `task` at `now_ns`, until something else comes first at `until_ns`.
    /// Its CPU is its own until `slice_ends_ns`.
    pub fn begin_turn(&mut self, task: usize, now_ns: u64, until_ns: u64, slice_ends_ns: u64) {
        self.task = task;
        self.reclaimed_ns = 0;
        self.now_ns = now_ns;
        self.waiting.goes_on(task);
        self.slice_ends_ns = slice_ends_ns;
        let arrives_ns = self.awaited_ns().map_or(u64::MAX, |done_ns| done_ns.saturating_sub(1));
        self.until_ns = until_ns.min(arrives_ns);
        if !self.pins.is_empty() {
            self.unpin(Why::Waited);
        }
    }

    /// Whether something else comes before what the task at work does next.
    pub fn turn_is_over(&self) -> bool {
        self.now_ns > self.until_ns
    }

    /// Whether the time of the task at work is over.
    pub fn time_is_over(&self) -> bool {
        self.now_ns >= self.ends_ns
    }

    /// Whether the task at work is as far ahead of its turn as accesses that take no fault may run:
    /// these change nothing that another task could see but that a page was accessed.
    pub fn is_far_ahead(&self) -> bool {
        self.is_ahead_by(AHEAD_NS)
    }

    /// Whether the task at work is more than `ns` ahead of its turn.
    pub fn is_ahead_by(&self, ns: u64) -> bool {
        self.now_ns > self.until_ns.saturating_add(ns)
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

    /// Lets the task at work spin until something else has come, or up to `until_ns`. `false`: its
    /// CPU is not its own any more.
    pub fn spin(&mut self, until_ns: u64) -> bool {
        if self.now_ns >= self.slice_ends_ns {
            return false;
        }
        let next_ns = self.until_ns.saturating_add(1).max(self.now_ns.saturating_add(SPIN_NS));
        self.now_ns = next_ns.min(until_ns).min(self.slice_ends_ns).max(self.now_ns);
        true
    }

    /// Notes that an access through `open` begins. Returns its number.
    pub fn begin_access(&mut self, open: &OpenFile) -> u64 {
        let number = self.begun;
        self.log.resume(open, number);
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
}
