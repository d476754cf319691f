//! Reclaims recently touched pages, so that a program's next touch of each faults again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::recent::RecentPages;
use super::{PageOut, drain_lru_batches};
use crate::Error;

/// Pages are reclaimed after this many touches, or after this time if fewer.
const MIN_BATCH: u64 = 8;
const RECLAIM_INTERVAL: Duration = Duration::from_millis(1);

/// Reclaims the recently touched pages of a set of processes.
#[derive(Default)]
pub struct PageReclaimer {
    processes: HashMap<u32, ReclaimedProcess>,
    /// Touches since the last reclaim.
    touches: u64,
    last_reclaim: Option<Instant>,
    /// How often a page stayed mapped while its process touched more than
    /// [`MAX_OPEN_PAGES`](super::MAX_OPEN_PAGES) others, or could not be reclaimed at all.
    pub stayed: u64,
    /// First error of process_madvise(2).
    pub refused: Option<Error>,
}

struct ReclaimedProcess {
    /// `None` while the process cannot be opened, such as after its exit; nothing is reclaimed
    /// then.
    memory: Option<PageOut>,
    recent: RecentPages,
}

impl PageReclaimer {
    /// Records that thread `tid` touched the page at `address` of a recorded mapping.
    pub fn add_touch(&mut self, pid: u32, tid: u32, address: u64) {
        let fresh = || ReclaimedProcess { memory: None, recent: RecentPages::default() };
        let process = self.processes.entry(pid).or_insert_with(fresh);
        if process.memory.is_none() {
            process.memory = PageOut::open(pid).ok();
        }
        process.recent.touch(tid, address);
        self.touches += 1;
    }

    /// Drops the state of a process that has exited or called exec.
    pub fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// Reclaims the pages that are due, if a batch is complete or the interval has elapsed.
    pub fn reclaim(&mut self) {
        let is_time = self.last_reclaim.is_none_or(|taken| taken.elapsed() >= RECLAIM_INTERVAL);
        let is_any_due =
            self.processes.values().any(|process| process.recent.due().next().is_some());
        if !is_any_due || self.touches < MIN_BATCH && !is_time {
            return;
        }
        let mut refused = None;
        for ReclaimedProcess { memory, recent } in self.processes.values_mut() {
            self.stayed += recent.count_late();
            let Some(memory) = memory else { continue };
            let taken = memory.reclaim(recent.due());
            recent.retain_due(|address| memory.is_mapped(address));
            // Pages in a per-CPU LRU batch cannot be isolated for reclaim before the batch is
            // drained.
            if taken.is_ok() && recent.is_any_old() {
                drain_lru_batches();
                let _ = memory.reclaim(recent.due());
                recent.retain_due(|address| memory.is_mapped(address));
            }
            self.stayed += recent.remove_tried();
            refused = refused.or(taken.err());
        }
        self.refused = self.refused.take().or(refused);
        (self.touches, self.last_reclaim) = (0, Some(Instant::now()));
    }
}
