//! The machine shared by all tasks: clock, devices and memory.

mod completion;
mod memory_budget;
mod memory_high;
mod pins;
mod reclaim;
mod windows;

use filemap_core::address::page_table::PageTables;
use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;

use self::memory_high::HighDebt;
use self::pins::{Pin, PinReason};
use self::reclaim::PausedReclaim;
use self::windows::PausedWindow;
use crate::Error;
use crate::device::Device;
use crate::log::RunLog;
use crate::memory::Memory;
use crate::open::OpenFile;
use crate::profile::Profile;
use crate::tally::Tally;
use crate::task::PerTask;
use crate::wait_queue::WaitQueue;

/// When reads complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// As the device of the profile delivers them.
    #[default]
    Device,
    /// Within an access only the pages that it waits for arrive, and all others before the next
    /// access. Decisions then depend on no device, so another engine can be compared line by line.
    Settled,
    /// All pages of a window arrive immediately, before the access continues, as on an infinitely
    /// fast device. A kernel's behaviour within an access lies between this and
    /// [`Timing::Settled`].
    Prompt,
}

/// Indexes of the devices: one for file data, one that fills holes.
pub const DISK: usize = 0;
pub const HOLES: usize = 1;

/// How far tasks may run ahead of each other while they take no fault: about the time of one fault.
/// Otherwise they would yield at each access, which would dominate the model's run time.
const MAX_AHEAD_NS: u64 = 1_000;

/// Polling interval of spinning tasks that spin for each other.
const SPIN_INTERVAL_NS: u64 = 200;

/// The machine that a program runs on.
#[derive(Debug)]
pub struct World<'a, C> {
    pub profile: &'a Profile,
    pub timing: Timing,
    pub memory: Memory<C>,
    /// [`DISK`] and [`HOLES`].
    pub devices: Vec<Device>,
    pub log: RunLog<'a>,
    /// Counters of the current step of the running task.
    pub tally: Tally,
    /// Tasks that wait.
    pub waiting: WaitQueue,
    /// Folios held by tasks that are not running.
    pins: Vec<Pin>,
    /// Per task, its debt above `memory.high`.
    debts: Vec<HighDebt>,
    /// Windows of paused tasks.
    windows: PerTask<PausedWindow>,
    /// Reclaims of paused tasks.
    reclaims: PerTask<PausedReclaim>,
    /// Whether only one task is left; it waits by advancing the clock.
    pub is_single_task: bool,
    /// The running task.
    pub task: usize,
    /// Whether the writer of its process's `mmap_lock` is on a CPU.
    pub owner_on_cpu: bool,
    /// When the running task stops: it finishes the access that it is making then.
    pub ends_ns: u64,
    /// Time the running task has spent reclaiming in this turn.
    pub reclaimed_ns: u64,
    /// Current time of the running task.
    now_ns: u64,
    /// How long it may run before another event comes first.
    until_ns: u64,
    /// End of its time slice.
    slice_ends_ns: u64,
    /// Completion time of the next request, cached because every step needs it.
    next_done_ns: Option<u64>,
    /// Maximum memory of the model itself, in bytes.
    max_bytes: u64,
    /// Total number of accesses of the program, and those begun so far.
    accesses: u64,
    begun: u64,
}

impl<'a, C: PageCache> World<'a, C> {
    /// A machine at time 0.
    pub fn new(
        profile: &'a Profile,
        timing: Timing,
        memory: Memory<C>,
        devices: Vec<Device>,
        log: RunLog<'a>,
    ) -> World<'a, C> {
        World {
            profile,
            timing,
            memory,
            devices,
            log,
            tally: Tally::default(),
            waiting: WaitQueue::default(),
            pins: Vec::new(),
            debts: Vec::new(),
            windows: PerTask::default(),
            reclaims: PerTask::default(),
            is_single_task: true,
            task: 0,
            owner_on_cpu: false,
            ends_ns: u64::MAX,
            reclaimed_ns: 0,
            now_ns: 0,
            until_ns: u64::MAX,
            slice_ends_ns: u64::MAX,
            next_done_ns: None,
            max_bytes: u64::MAX,
            accesses: 0,
            begun: 0,
        }
    }

    /// Ends the run with an error if the model needs more than `max_bytes` of memory. `accesses`,
    /// per phase, serves to extrapolate.
    pub fn limit_memory(&mut self, most_bytes: u64, accesses: impl Iterator<Item = u64>) {
        self.max_bytes = most_bytes;
        self.accesses = accesses.fold(0, u64::saturating_add);
    }

    /// Starts a turn of `task` at `now_ns`, until another event comes first at `until_ns`. Its time
    /// slice ends at `slice_ends_ns`.
    pub fn begin_turn(&mut self, task: usize, now_ns: u64, until_ns: u64, slice_ends_ns: u64) {
        self.task = task;
        self.reclaimed_ns = 0;
        self.now_ns = now_ns;
        self.waiting.resume(task);
        self.slice_ends_ns = slice_ends_ns;
        let arrives_ns = self.awaited_ns().map_or(u64::MAX, |done_ns| done_ns.saturating_sub(1));
        self.until_ns = until_ns.min(arrives_ns);
        if !self.pins.is_empty() {
            self.unpin(PinReason::Waited);
        }
    }

    /// Whether another event comes before the next action of the running task.
    pub fn must_yield(&self) -> bool {
        self.now_ns > self.until_ns
    }

    /// Whether the running task has reached its end time.
    pub fn is_past_end(&self) -> bool {
        self.now_ns >= self.ends_ns
    }

    /// Whether the running task is as far ahead as accesses without a fault may run: such accesses
    /// change nothing visible to other tasks except accessed bits.
    pub fn is_far_ahead(&self) -> bool {
        self.is_ahead_by(MAX_AHEAD_NS)
    }

    /// Whether the running task is more than `ns` past its turn.
    pub fn is_ahead_by(&self, ns: u64) -> bool {
        self.now_ns > self.until_ns.saturating_add(ns)
    }

    /// Time of the next completion, if a task may be waiting for it.
    pub fn awaited_ns(&self) -> Option<u64> {
        self.next_done_ns.filter(|_| !self.waiting.is_empty())
    }

    /// Passes think time up to the end of the time slice. Returns the rest.
    pub fn think(&mut self, think_ns: u64) -> u64 {
        let awaited_ns = self.awaited_ns().unwrap_or(u64::MAX);
        let until_ns = self.slice_ends_ns.min(awaited_ns);
        let now_ns = think_ns.min(until_ns.saturating_sub(self.now_ns));
        self.advance(now_ns);
        think_ns - now_ns
    }

    /// Spins until another event occurs, or up to `until_ns`. `false`: the time slice is over.
    pub fn spin(&mut self, until_ns: u64) -> bool {
        if self.now_ns >= self.slice_ends_ns {
            return false;
        }
        let next_ns =
            self.until_ns.saturating_add(1).max(self.now_ns.saturating_add(SPIN_INTERVAL_NS));
        self.now_ns = next_ns.min(until_ns).min(self.slice_ends_ns).max(self.now_ns);
        true
    }

    /// Counts a new access through `open`. Returns its number.
    pub fn begin_access(&mut self, open: &OpenFile) -> u64 {
        let number = self.begun;
        self.log.resume(open, number);
        self.log.at(self.task, self.now_ns);
        self.begun += 1;
        self.tally.accesses += 1;
        self.advance(self.profile.cost.touch_ns);
        number
    }

    /// Number of accesses begun. Work outside accesses is attributed to this number.
    pub fn accesses_begun(&self) -> u64 {
        self.begun
    }

    /// Checks the memory limit of the model. How much a job needs is only known as it runs.
    ///
    /// # Errors
    /// If the limit is exceeded.
    pub fn check_memory_limit(&self, tables: &PageTables) -> Result<(), Error> {
        let held = self.memory.held_bytes() + tables.held_bytes();
        if held <= self.max_bytes {
            return Ok(());
        }
        let all = u128::from(held) * u128::from(self.accesses.max(1));
        let needed = (all / u128::from(self.begun.max(1))).max(held.into());
        Err(Error::TooLarge {
            needed_gib: u64::try_from(needed >> 30).unwrap_or(u64::MAX).saturating_add(1),
            most_gib: self.max_bytes >> 30,
        })
    }

    /// Current time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Advances the clock. It saturates after 584 years, reached only by absurd profiles.
    pub fn advance(&mut self, ns: u64) {
        self.now_ns = self.now_ns.saturating_add(ns);
    }
}
