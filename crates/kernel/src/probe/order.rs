//! Steps of threads that wait for steps of other threads.

use filemap_job::program::StepOf;

use super::process::ProbeProcess;
use super::shared::{SharedCounter, SharedMemory};

/// How many steps of each thread are done.
pub(super) struct StepOrder {
    done: &'static [SharedCounter],
    /// Somebody waits for steps of these threads.
    is_awaited: Vec<bool>,
}

impl StepOrder {
    pub(super) fn new(process: &ProbeProcess, memory: &mut SharedMemory) -> StepOrder {
        let mut is_awaited = vec![false; process.threads.len()];
        let all = process.threads.iter().flat_map(|thread| &thread.after);
        all.flat_map(|(_, after)| after).for_each(|of| is_awaited[of.thread] = true);
        StepOrder { done: memory.take(process.threads.len()), is_awaited }
    }

    /// Waits until all of `steps` are done.
    pub(super) fn wait(&self, steps: &[StepOf]) {
        steps.iter().for_each(|of| self.done[of.thread].wait_for(of.step + 1));
    }

    /// A step of `thread` is done.
    pub(super) fn finish_step(&self, thread: usize) {
        if self.is_awaited[thread] {
            self.done[thread].increment();
        }
    }
}
