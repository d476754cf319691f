//! What a job counted.

use super::ending::Ending;
use super::waits::Waits;

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rounds that were completed: a file mapped, read and unmapped.
    pub rounds: u64,
    /// Faults served.
    pub faults: u64,
    /// PGMAJFAULT events.
    pub major_faults: u64,
    /// Tries that dropped their lock for I/O (`retry_mmap_drop`).
    pub lock_drops: u64,
    /// Faults that did so at least once.
    pub faults_dropped: u64,
    /// Tries that began behind another one of their fault: every arrival at the retry path.
    pub retries: u64,
    /// Misses of retries: the page that was waited for is gone (`retry_io_miss`).
    pub retry_misses: u64,
    /// Those of them that may not drop their lock, and read a window under it.
    pub misses_under_lock: u64,
    /// Tries that could not have the lock of their VMA.
    pub refused: u64,
    /// Windows asked for.
    pub windows: u64,
    /// Those of them that were cut short, as a page could not be charged.
    pub windows_cut: u64,
    /// Pages added to the cache.
    pub pages_read: u64,
    /// Pages evicted.
    pub evicted_pages: u64,
    /// Times that a writer changed the protection of its mapping.
    pub protections: u64,
    /// Times that a task slept as it owed pages.
    pub throttled: u64,
    /// Events: steps of tasks, and what happened to them.
    pub events: u64,
}

impl Counts {
    /// What was counted since `before`.
    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            rounds: self.rounds - before.rounds,
            faults: self.faults - before.faults,
            major_faults: self.major_faults - before.major_faults,
            lock_drops: self.lock_drops - before.lock_drops,
            faults_dropped: self.faults_dropped - before.faults_dropped,
            retries: self.retries - before.retries,
            retry_misses: self.retry_misses - before.retry_misses,
            misses_under_lock: self.misses_under_lock - before.misses_under_lock,
            refused: self.refused - before.refused,
            windows: self.windows - before.windows,
            windows_cut: self.windows_cut - before.windows_cut,
            pages_read: self.pages_read - before.pages_read,
            evicted_pages: self.evicted_pages - before.evicted_pages,
            protections: self.protections - before.protections,
            throttled: self.throttled - before.throttled,
            events: self.events - before.events,
        }
    }
}

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was counted behind the warm-up.
    pub counts: Counts,
    /// Where the time of the threads that read went, in the same time: what was under way at the
    /// end counts until then.
    pub waits: Waits,
    /// When it ended.
    pub ended_ns: u64,
    /// The time that this was counted in.
    pub elapsed_ns: u64,
    /// It did not end before its warm-up was over. Otherwise nothing was counted.
    pub has_warmed_up: bool,
    /// How it ended.
    pub ending: Ending,
}

impl Outcome {
    /// Retries that found their page gone, of a thousand tries that dropped their lock.
    pub fn miss_permille(&self) -> u64 {
        self.counts.retry_misses * 1000 / self.counts.lock_drops.max(1)
    }
}
