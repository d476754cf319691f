//! Steps of threads that wait for steps of other threads.

use std::sync::{Condvar, Mutex, PoisonError};

use filemap_job::program::StepOf;

use super::process::Process;

/// How many steps of each thread are done.
pub(super) struct Order {
    done: Mutex<Vec<usize>>,
    changed: Condvar,
    /// Somebody waits for steps of these threads.
    is_awaited: Vec<bool>,
}

impl Order {
    pub(super) fn of(process: &Process) -> Order {
        let mut is_awaited = vec![false; process.threads.len()];
        let all = process.after.iter().flatten().flat_map(|(_, after)| after);
        all.for_each(|of| is_awaited[of.thread] = true);
        let done = Mutex::new(vec![0; process.threads.len()]);
        Order { done, changed: Condvar::new(), is_awaited }
    }

    /// Waits until all of `steps` are done.
    pub(super) fn wait(&self, steps: &[StepOf]) {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let is_early = |done: &mut Vec<usize>| steps.iter().any(|of| done[of.thread] <= of.step);
        drop(self.changed.wait_while(done, is_early));
    }

    /// A step of `thread` is done.
    pub(super) fn done(&self, thread: usize) {
        if self.is_awaited[thread] {
            self.done.lock().unwrap_or_else(PoisonError::into_inner)[thread] += 1;
            self.changed.notify_all();
        }
    }
}
