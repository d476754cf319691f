//! Has pages go again that were touched, so that each change of page is a fault.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::recent::Recent;
use super::{PageOut, settle_lists};
use crate::Error;

/// Pages are taken when so many were touched, or after so long.
const AT_A_TIME: u64 = 8;
const BETWEEN: Duration = Duration::from_millis(1);

/// The pages that processes have touched last, which are taken from them again.
#[derive(Default)]
pub struct Changes {
    processes: HashMap<u32, Process>,
    /// How many were touched since pages were taken last.
    touched: u64,
    taken: Option<Instant>,
    /// How often a page stayed while its process touched more than [`super::MOST_OPEN`] others, or
    /// for good.
    pub stayed: u64,
    /// The first refusal.
    pub refused: Option<Error>,
}

struct Process {
    /// `None` where it could not be opened yet, as where the process has ended: nothing is taken.
    memory: Option<PageOut>,
    recent: Recent,
}

impl Changes {
    /// A thread of a process touched a page of a recorded mapping.
    pub fn touched(&mut self, pid: u32, tid: u32, address: u64) {
        let fresh = || Process { memory: None, recent: Recent::default() };
        let process = self.processes.entry(pid).or_insert_with(fresh);
        if process.memory.is_none() {
            process.memory = PageOut::of(pid).ok();
        }
        process.recent.touch(tid, address);
        self.touched += 1;
    }

    /// A process has ended, or is another program.
    pub fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// Takes pages, when it is time.
    pub fn take(&mut self) {
        let is_time = self.taken.is_none_or(|taken| taken.elapsed() >= BETWEEN);
        let is_any_due = self.processes.values().any(|of| of.recent.due().next().is_some());
        if !is_any_due || self.touched < AT_A_TIME && !is_time {
            return;
        }
        let mut refused = None;
        for Process { memory, recent } in self.processes.values_mut() {
            self.stayed += recent.count_late();
            let Some(memory) = memory else { continue };
            let taken = memory.take(recent.due());
            recent.keep_due(|address| memory.has(address));
            // Those that wait on the list of a CPU cannot be taken before they leave it.
            if taken.is_ok() && recent.is_any_old() {
                settle_lists();
                let _ = memory.take(recent.due());
                recent.keep_due(|address| memory.has(address));
            }
            self.stayed += recent.leave_tried();
            refused = refused.or(taken.err());
        }
        self.refused = self.refused.take().or(refused);
        (self.touched, self.taken) = (0, Some(Instant::now()));
    }
}
