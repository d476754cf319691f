//! What is to happen, by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::mm::mmap_lock::TaskId;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A task goes on that has a CPU.
    Run(TaskId),
    /// A task can run, and asks for a CPU.
    Wake(TaskId),
    /// Where CPUs run in turn: the step of this turn is done.
    Turn(u64),
    /// Where CPUs run in turn: a tick of this CPU.
    Tick(usize),
    /// Data arrives from the device.
    Arrival,
    /// The statistics of the lists are flushed.
    Flush,
    /// What happened before is not counted.
    WarmedUp,
    /// The job ends.
    End,
}

/// What is to happen: by time, and at the same time in the order in which it was put in.
#[derive(Clone, Debug, Default)]
pub struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
}

impl Events {
    /// Adds `event` at `at_ns`.
    pub fn add(&mut self, at_ns: u64, event: Event) {
        self.heap.push(Reverse((at_ns, self.sequence, event)));
        self.sequence += 1;
    }

    /// The next event and its time.
    pub fn take(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((at_ns, _, event))| (at_ns, event))
    }

    /// When the next one is.
    pub fn next_ns(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns)
    }
}
