//! Steps of threads that wait for steps of other threads.

use filemap_job::program::StepOf;

use super::process::Process;
use super::shared::{Count, SharedMemory};

/// How many steps of each thread are done.
pub(super) struct Order {
    done: &'static [Count],
    /// Somebody waits for steps of these threads.
    is_awaited: Vec<bool>,
}

impl Order {
    pub(super) fn of(process: &Process, memory: &mut SharedMemory) -> Order {
        let mut is_awaited = vec![false; process.threads.len()];
        let all = process.threads.iter().flat_map(|thread| &thread.after);
        all.flat_map(|(_, after)| after).for_each(|of| is_awaited[of.thread] = true);
        Order { done: memory.take(process.threads.len()), is_awaited }
    }

    /// Waits until all of `steps` are done.
    pub(super) fn wait(&self, steps: &[StepOf]) {
        steps.iter().for_each(|of| self.done[of.thread].reach(of.step + 1));
    }

    /// A step of `thread` is done.
    pub(super) fn done(&self, thread: usize) {
        if self.is_awaited[thread] {
            self.done[thread].add();
        }
    }
}
