//! Where the threads of all processes of a probe meet.

use std::mem::size_of;

use filemap_job::waits::{Call, Histogram};

use super::barriers::{BarrierState, Barriers};
use super::cpus;
use super::order::StepOrder;
use super::outcome::COST_WORDS;
use super::process::ProbeProcess;
use super::results::SharedResults;
use super::shared::{SharedCounter, SharedMemory};
use super::start::StartGate;
use crate::Error;

/// What the threads of all processes share, wherever they run.
pub(super) struct ProbeSync {
    pub(super) start: StartGate,
    pub(super) order: StepOrder,
    pub(super) barriers: Barriers,
    pub(super) results: SharedResults,
    /// How many threads of each process are ready.
    ready: &'static [SharedCounter],
    /// How many processes have locked their memory, and how many could not.
    locked: &'static [SharedCounter],
}

impl ProbeSync {
    /// For `process`, before it forks the others.
    pub(super) fn new(process: &ProbeProcess) -> Result<ProbeSync, Error> {
        let (threads, processes) = (process.threads.len(), process.processes());
        let costs = COST_WORDS * process.steps().count();
        let words = 2 + 2 * threads + costs + Call::ALL.len() * Histogram::WORDS;
        let counts = 2 * threads + processes + 3;
        // Between two kinds a word may be left out.
        let bytes = (words + 8) * size_of::<u64>()
            + counts * size_of::<SharedCounter>()
            + process.barriers.len() * size_of::<BarrierState>();
        let mut memory = SharedMemory::map(bytes)?;
        Ok(ProbeSync {
            start: StartGate::new(process, cpus::allowed_cpus() as usize, &mut memory),
            results: SharedResults::new(process, &mut memory),
            order: StepOrder::new(process, &mut memory),
            barriers: Barriers::new(process, &mut memory),
            ready: memory.take(processes),
            locked: memory.take(2),
        })
    }

    /// Another thread of process `number` is ready.
    pub(super) fn thread_ready(&self, number: usize) {
        self.ready[number].increment();
    }

    /// Waits until so many threads of process `number` are ready.
    pub(super) fn await_ready(&self, number: usize, threads: usize) {
        self.ready[number].wait_for(threads);
    }

    /// All threads of a process are ready, with its memory locked or not.
    pub(super) fn process_ready(&self, is_locked: bool) {
        if !is_locked {
            self.locked[1].increment();
        }
        self.locked[0].increment();
    }

    /// Waits until so many processes are ready. Returns whether the memory of all is locked.
    pub(super) fn await_locked(&self, processes: usize) -> bool {
        self.locked[0].wait_for(processes);
        self.locked[1].value() == 0
    }
}
