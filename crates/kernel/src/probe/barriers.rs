//! Where threads of any processes wait until all of a barrier have come.

use super::process::ProbeProcess;
use super::shared::{Shareable, SharedCounter, SharedMemory};

/// The barriers of a process and those that it forks.
pub(super) struct Barriers {
    gates: &'static [BarrierState],
    /// How many threads each waits for.
    threads: Vec<u32>,
}

/// A barrier.
pub(super) struct BarrierState {
    /// How many have come, in all turns.
    arrivals: SharedCounter,
    /// How often all have come.
    turns: SharedCounter,
}

// SAFETY: numbers, which any bits are.
unsafe impl Shareable for BarrierState {}

impl Barriers {
    pub(super) fn new(process: &ProbeProcess, memory: &mut SharedMemory) -> Barriers {
        let threads = process.barriers.iter().map(|&threads| threads as u32);
        Barriers { gates: memory.take(process.barriers.len()), threads: threads.collect() }
    }

    /// Waits until all threads of barrier `number` have come as often as this one.
    pub(super) fn wait(&self, number: usize) {
        let BarrierState { arrivals: come, turns } = &self.gates[number];
        let turn = turns.value();
        // The counts wrap around, at which a number of threads that divides no power of two would
        // lose its place: what has come is counted from the turn.
        let own = come.increment().wrapping_sub(turn.wrapping_mul(self.threads[number])) + 1;
        if own == self.threads[number] {
            turns.increment();
        } else {
            turns.wait_change(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread::scope;

    use super::*;

    #[test]
    fn nobody_goes_on_before_all_have_come() {
        let process = ProbeProcess { barriers: vec![3], ..ProbeProcess::default() };
        let mut memory = SharedMemory::map(64).unwrap();
        let barriers = Barriers::new(&process, &mut memory);
        let come = AtomicU32::new(0);
        let often = || {
            for round in 1..=1000 {
                come.fetch_add(1, Ordering::SeqCst);
                barriers.wait(0);
                assert!(come.load(Ordering::SeqCst) >= 3 * round);
                barriers.wait(0);
                assert!(come.load(Ordering::SeqCst) >= 3 * round);
            }
        };
        scope(|scope| (0..3).for_each(|_| drop(scope.spawn(often))));
        assert_eq!(come.into_inner(), 3000);
    }
}
