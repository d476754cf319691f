//! Has pages go again that were touched, so that each change of page is a fault.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::recent::RecentPages;
use super::{PageOut, drain_lru_batches};
use crate::Error;

/// Pages are taken when so many were touched, or after so long.
const MIN_BATCH: u64 = 8;
const RECLAIM_INTERVAL: Duration = Duration::from_millis(1);

/// The pages that processes have touched last, which are taken from them again.
#[derive(Default)]
pub struct PageReclaimer {
    processes: HashMap<u32, ReclaimedProcess>,
    /// How many were touched since pages were taken last.
    touches: u64,
    last_reclaim: Option<Instant>,
    /// How often a page stayed while its process touched more than [`super::MOST_OPEN`] others, or
    /// for good.
    pub stayed: u64,
    /// The first refusal.
    pub refused: Option<Error>,
}

struct ReclaimedProcess {
    /// `None` where it could not be opened yet, as where the process has ended: nothing is taken.
    memory: Option<PageOut>,
    recent: RecentPages,
}

impl PageReclaimer {
    /// A thread of a process touched a page of a recorded mapping.
    pub fn add_touch(&mut self, pid: u32, tid: u32, address: u64) {
        let fresh = || ReclaimedProcess { memory: None, recent: RecentPages::default() };
        let process = self.processes.entry(pid).or_insert_with(fresh);
        if process.memory.is_none() {
            process.memory = PageOut::open(pid).ok();
        }
        process.recent.touch(tid, address);
        self.touches += 1;
    }

    /// A process has ended, or is another program.
    pub fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// Takes pages, when it is time.
    pub fn reclaim(&mut self) {
        let is_time = self.last_reclaim.is_none_or(|taken| taken.elapsed() >= RECLAIM_INTERVAL);
        let is_any_due = self.processes.values().any(|of| of.recent.due().next().is_some());
        if !is_any_due || self.touches < MIN_BATCH && !is_time {
            return;
        }
        let mut refused = None;
        for ReclaimedProcess { memory, recent } in self.processes.values_mut() {
            self.stayed += recent.count_late();
            let Some(memory) = memory else { continue };
            let taken = memory.reclaim(recent.due());
            recent.retain_due(|address| memory.is_mapped(address));
            // Those that wait on the list of a CPU cannot be taken before they leave it.
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
