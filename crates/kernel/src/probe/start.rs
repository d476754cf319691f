//! How the threads of all processes begin: in order, and at once where there are CPUs for them.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cpus::BatchPolicy;
use super::process::ProbeProcess;
use super::shared::{SharedCounter, SharedMemory};
use crate::clock::now_ns;

/// The start of all threads. One barrier for all would not do: on a CPU that they share, a thread
/// that is woken mostly runs before the one that woke it, so that the last begins first.
pub(super) struct StartGate {
    /// Which threads may begin.
    may_begin: &'static [SharedCounter],
    /// Threads that begin together: there is a CPU for each.
    together: usize,
    /// How many of those that begin together are on a CPU.
    on_cpu: &'static AtomicU64,
    /// When the last of them came: none has gone on before.
    begins_ns: &'static AtomicU64,
}

impl StartGate {
    /// For the threads of `process`, and of those that it forks, on so many CPUs.
    pub(super) fn new(process: &ProbeProcess, cpus: usize, memory: &mut SharedMemory) -> StartGate {
        let threads = process.threads.len();
        let words = memory.take(2);
        StartGate {
            may_begin: memory.take(threads),
            together: threads.min(cpus.max(1)),
            on_cpu: &words[0],
            begins_ns: &words[1],
        }
    }

    /// Lets the threads begin, all of which are ready.
    pub(super) fn begin(&self) {
        self.may_begin[..self.together].iter().for_each(|thread| {
            thread.increment();
        });
    }

    /// A time before which no thread has begun, where all have.
    pub(super) fn begins_ns(&self) -> u64 {
        self.begins_ns.load(Ordering::Acquire)
    }

    /// Thread `number`, which calls this, waits until it may begin. Those for which there is a CPU
    /// wait for each other on it. Each of the rest comes after the one before it, which wakes it
    /// when it gets a CPU itself.
    pub(super) fn wait(&self, number: usize) {
        let may_begin = &self.may_begin[number];
        if may_begin.value() == 0 {
            let modest = BatchPolicy::begin();
            may_begin.wait_for(1);
            drop(modest);
        }
        if number < self.together {
            self.begins_ns.fetch_max(now_ns(), Ordering::AcqRel);
            self.on_cpu.fetch_add(1, Ordering::AcqRel);
            while self.on_cpu.load(Ordering::Acquire) < self.together as u64 {
                spin_loop();
            }
        }
        if number + 1 >= self.together
            && let Some(next) = self.may_begin.get(number + 1)
        {
            next.increment();
        }
    }
}
