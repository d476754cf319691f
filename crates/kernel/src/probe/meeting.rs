//! Where the threads of all processes of a probe meet.

use std::mem::size_of;

use filemap_job::waits::{Call, Histogram};

use super::barriers::{Barriers, Gate};
use super::cpus;
use super::order::Order;
use super::outcome::COST_WORDS;
use super::process::Process;
use super::results::Results;
use super::shared::{Count, SharedMemory};
use super::start::Start;
use crate::Error;

/// What the threads of all processes share, wherever they run.
pub(super) struct Meeting {
    pub(super) start: Start,
    pub(super) order: Order,
    pub(super) barriers: Barriers,
    pub(super) results: Results,
    /// How many threads of each process are ready.
    ready: &'static [Count],
    /// How many processes have locked their memory, and how many could not.
    locked: &'static [Count],
}

impl Meeting {
    /// For `process`, before it forks the others.
    pub(super) fn of(process: &Process) -> Result<Meeting, Error> {
        let (threads, processes) = (process.threads.len(), process.processes());
        let costs = COST_WORDS * process.steps().count();
        let words = 2 + 2 * threads + costs + Call::ALL.len() * Histogram::WORDS;
        let counts = 2 * threads + processes + 3;
        // Between two kinds a word may be left out.
        let bytes = (words + 8) * size_of::<u64>()
            + counts * size_of::<Count>()
            + process.barriers.len() * size_of::<Gate>();
        let mut memory = SharedMemory::map(bytes)?;
        Ok(Meeting {
            start: Start::of(process, cpus::allowed() as usize, &mut memory),
            results: Results::of(process, &mut memory),
            order: Order::of(process, &mut memory),
            barriers: Barriers::of(process, &mut memory),
            ready: memory.take(processes),
            locked: memory.take(2),
        })
    }

    /// Another thread of process `number` is ready.
    pub(super) fn is_ready(&self, number: usize) {
        self.ready[number].add();
    }

    /// Waits until so many threads of process `number` are ready.
    pub(super) fn await_ready(&self, number: usize, threads: usize) {
        self.ready[number].reach(threads);
    }

    /// All threads of a process are ready, with its memory locked or not.
    pub(super) fn has_locked(&self, is_locked: bool) {
        if !is_locked {
            self.locked[1].add();
        }
        self.locked[0].add();
    }

    /// Waits until so many processes are ready. Returns whether the memory of all is locked.
    pub(super) fn await_locked(&self, processes: usize) -> bool {
        self.locked[0].reach(processes);
        self.locked[1].get() == 0
    }
}
