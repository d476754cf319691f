//! Synchronizes the threads of all processes of a probe, by counters in shared memory on which
//! threads wait by futex(2).

use std::hint::spin_loop;
use std::mem::{align_of, size_of};
use std::ptr::null_mut;
use std::slice::from_raw_parts;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use filemap_job::program::ThreadStep;
use filemap_job::waits::{Call, Histogram};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::thread::futex::{Flags, wait, wake};

use super::cpus;
use super::cpus::BatchPolicy;
use super::process::ProbeProcess;
use super::results::{COST_WORDS, SharedResults};
use crate::Error;
use crate::clock::now_ns;

/// Synchronization state of the threads of all processes.
pub(super) struct ProbeSync {
    pub(super) start: StartGate,
    pub(super) order: StepOrder,
    pub(super) barriers: Barriers,
    pub(super) results: SharedResults,
    /// Number of ready threads of each process.
    ready: &'static [SharedCounter],
    /// Number of processes that have locked their memory, and that could not.
    locked: &'static [SharedCounter],
}

impl ProbeSync {
    /// State for `process`, created before it forks the others.
    pub(super) fn new(process: &ProbeProcess) -> Result<ProbeSync, Error> {
        let (threads, processes) = (process.threads.len(), process.processes());
        let costs = COST_WORDS * process.steps().count();
        let words = 2 + 2 * threads + costs + Call::ALL.len() * Histogram::WORDS;
        let counts = 2 * threads + processes + 3;
        // Alignment may skip a word between two types.
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

    /// Records that another thread of process `number` is ready.
    pub(super) fn thread_ready(&self, number: usize) {
        self.ready[number].increment();
    }

    /// Waits until `threads` threads of process `number` are ready.
    pub(super) fn await_ready(&self, number: usize, threads: usize) {
        self.ready[number].wait_for(threads);
    }

    /// Records that all threads of a process are ready, with its memory locked or not.
    pub(super) fn process_ready(&self, is_locked: bool) {
        if !is_locked {
            self.locked[1].increment();
        }
        self.locked[0].increment();
    }

    /// Waits until `processes` processes are ready. Returns whether the memory of all of them is
    /// locked.
    pub(super) fn await_locked(&self, processes: usize) -> bool {
        self.locked[0].wait_for(processes);
        self.locked[1].value() == 0
    }
}

/// Starts all threads. A single barrier is not enough: on a shared CPU, a woken thread usually
/// preempts the thread that woke it, so the last one would begin first.
pub(super) struct StartGate {
    /// For each thread, whether it may begin.
    may_begin: &'static [SharedCounter],
    /// Number of threads that begin together: one per CPU.
    together: usize,
    /// How many of the threads that begin together are on a CPU.
    on_cpu: &'static AtomicU64,
    /// When the last of them arrived, before any of them continued.
    begins_ns: &'static AtomicU64,
}

impl StartGate {
    /// Start state for all threads of `process` on `cpus` CPUs.
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

    /// Lets the threads begin.
    pub(super) fn begin(&self) {
        self.may_begin[..self.together].iter().for_each(|thread| {
            thread.increment();
        });
    }

    /// A time before which no thread has begun; valid once all have begun.
    pub(super) fn begins_ns(&self) -> u64 {
        self.begins_ns.load(Ordering::Acquire)
    }

    /// Blocks thread `number` until it may begin. The threads that have a CPU each spin until all
    /// of them are running. Each of the others is woken by the one before it.
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

/// Number of completed steps of each thread.
pub(super) struct StepOrder {
    done: &'static [SharedCounter],
    /// For each thread, whether other threads wait for its steps.
    is_awaited: Vec<bool>,
}

impl StepOrder {
    pub(super) fn new(process: &ProbeProcess, memory: &mut SharedMemory) -> StepOrder {
        let mut is_awaited = vec![false; process.threads.len()];
        let all = process.threads.iter().flat_map(|thread| &thread.after);
        all.flat_map(|(_, after)| after).for_each(|step| is_awaited[step.thread] = true);
        StepOrder { done: memory.take(process.threads.len()), is_awaited }
    }

    /// Waits until all of `steps` are complete.
    pub(super) fn wait(&self, steps: &[ThreadStep]) {
        steps.iter().for_each(|step| self.done[step.thread].wait_for(step.step + 1));
    }

    /// Records that a step of `thread` is complete.
    pub(super) fn finish_step(&self, thread: usize) {
        if self.is_awaited[thread] {
            self.done[thread].increment();
        }
    }
}

/// The barriers of a process and those that it forks.
pub(super) struct Barriers {
    gates: &'static [BarrierState],
    /// Number of threads that each waits for.
    threads: Vec<u32>,
}

/// A barrier.
pub(super) struct BarrierState {
    /// Arrivals over all turns.
    arrivals: SharedCounter,
    /// Completed turns.
    turns: SharedCounter,
}

// SAFETY: integers, for which all bit patterns are valid.
unsafe impl Shareable for BarrierState {}

impl Barriers {
    pub(super) fn new(process: &ProbeProcess, memory: &mut SharedMemory) -> Barriers {
        let threads = process.barriers.iter().map(|&threads| threads as u32);
        Barriers { gates: memory.take(process.barriers.len()), threads: threads.collect() }
    }

    /// Waits until all threads of barrier `number` have arrived.
    pub(super) fn wait(&self, number: usize) {
        let BarrierState { arrivals: come, turns } = &self.gates[number];
        let turn = turns.value();
        // Counted relative to the turn, since the counters wrap around.
        let own = come.increment().wrapping_sub(turn.wrapping_mul(self.threads[number])) + 1;
        if own == self.threads[number] {
            turns.increment();
        } else {
            turns.wait_change(turn);
        }
    }
}

/// Types that may be placed in memory shared by processes.
///
/// # Safety
/// All zeros is a valid value, it contains no address, and it has no drop glue.
pub(super) unsafe trait Shareable: Sync {}

// SAFETY: an integer, for which all bit patterns are valid.
unsafe impl Shareable for AtomicU64 {}
// SAFETY: as above.
unsafe impl Shareable for [AtomicU64; COST_WORDS] {}
// SAFETY: as above.
unsafe impl Shareable for [AtomicU64; Histogram::WORDS] {}
// SAFETY: as above.
unsafe impl Shareable for SharedCounter {}

/// A mapping shared by this process and every process forked later, until they end.
pub(super) struct SharedMemory {
    next: usize,
    end: usize,
}

impl SharedMemory {
    /// Maps `bytes` zeroed bytes.
    pub(super) fn map(bytes: usize) -> Result<SharedMemory, Error> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe { mmap_anonymous(null_mut(), bytes.max(1), protection, flags) };
        let base = base.map_err(|errno| Error::call("map memory that processes share", errno))?;
        Ok(SharedMemory { next: base as usize, end: base as usize + bytes })
    }

    /// Allocates `count` zeroed values from it.
    pub(super) fn take<T: Shareable>(&mut self, count: usize) -> &'static [T] {
        let start = self.next.next_multiple_of(align_of::<T>());
        self.next = start + count * size_of::<T>();
        assert!(self.next <= self.end, "it was mapped for all that is taken");
        // SAFETY: this part of the mapping, which is never unmapped, is handed out once; it is
        // zeroed, which `Shareable` allows.
        unsafe { from_raw_parts(start as *const T, count) }
    }
}

/// A counter on which threads of any process can wait.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(super) struct SharedCounter(AtomicU32);

impl SharedCounter {
    pub(super) fn value(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Adds one and wakes waiters. Returns the previous value.
    pub(super) fn increment(&self) -> u32 {
        let before = self.0.fetch_add(1, Ordering::AcqRel);
        // Waking cannot fail for a mapped address.
        let _ = wake(&self.0, Flags::empty(), i32::MAX as u32);
        before
    }

    /// Waits until it is at least `number`.
    pub(super) fn wait_for(&self, number: usize) {
        self.wait_until(|now| now as usize >= number);
    }

    /// Waits until it differs from `number`.
    pub(super) fn wait_change(&self, number: u32) {
        self.wait_until(|now| now != number);
    }

    fn wait_until(&self, is_met: impl Fn(u32) -> bool) {
        loop {
            let now = self.value();
            if is_met(now) {
                return;
            }
            // Returns early on a signal, or if the number has changed; the loop checks both.
            let _ = wait(&self.0, Flags::empty(), now, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread::scope;

    use super::*;

    #[test]
    fn barrier_holds_until_all_arrive() {
        let process = ProbeProcess { barriers: vec![3], ..ProbeProcess::default() };
        let mut memory = SharedMemory::map(64).unwrap();
        let barriers = Barriers::new(&process, &mut memory);
        let arrived = AtomicU32::new(0);
        let often = || {
            for round in 1..=1000 {
                arrived.fetch_add(1, Ordering::SeqCst);
                barriers.wait(0);
                assert!(arrived.load(Ordering::SeqCst) >= 3 * round);
                barriers.wait(0);
                assert!(arrived.load(Ordering::SeqCst) >= 3 * round);
            }
        };
        scope(|scope| (0..3).for_each(|_| drop(scope.spawn(often))));
        assert_eq!(arrived.into_inner(), 3000);
    }

    #[test]
    fn counters_are_separate_and_wake_waiters() {
        let mut memory = SharedMemory::map(12 + 16).unwrap();
        let counts: &[SharedCounter] = memory.take(3);
        let words: &[AtomicU64] = memory.take(1);
        assert_eq!(words[0].load(Ordering::Relaxed), 0);
        scope(|scope| {
            scope.spawn(|| counts[1].wait_for(2));
            counts[1].increment();
            assert_eq!(counts[1].increment(), 1);
        });
        counts[1].wait_change(0);
        assert_eq!((counts[0].value(), counts[1].value()), (0, 2));
    }
}
