//! Order between threads. Advice on a file stays between the same accesses of all threads as in the
//! recording, and a thread starts after the steps that precede its first event.

use std::collections::HashMap;

use super::drafts::{DraftThread, StepRef};

/// Tracks which thread used which file last.
#[derive(Debug, Default)]
pub struct ThreadOrder {
    files: Vec<FileOrder>,
    /// Thread and file of the last use, for a fast path on repetitions; `None` after advice.
    last: Option<(u32, usize)>,
    /// By process: the thread with the last use of a file.
    last_thread: HashMap<u32, u32>,
}

#[derive(Debug, Default)]
struct FileOrder {
    users: HashMap<u32, FileUser>,
    /// The step of the last advice on the file, and the number of advice steps so far.
    advised: Option<StepRef>,
    advices: usize,
}

/// A thread that uses a file.
#[derive(Debug, Default)]
struct FileUser {
    /// The number of advice steps that its next step is ordered after.
    seen_advices: usize,
    /// It has used the file since the last advice of another thread.
    is_active: bool,
}

impl ThreadOrder {
    /// Thread `thread` starts, in a process created by process `parent`. It waits for the last step
    /// of its process, or else of the parent process.
    pub fn on_thread(&mut self, thread: u32, parent: Option<u32>, threads: &mut [DraftThread]) {
        let process = threads[thread as usize].process;
        let of_parent = || parent.and_then(|parent| self.last_thread.get(&parent));
        let before = self.last_thread.get(&process).or_else(of_parent).copied();
        if let Some(before) = before
            && let Some(step) = threads[before as usize].drafts.seal()
        {
            threads[thread as usize].drafts.wait_for(StepRef { thread: before, step });
        }
    }

    /// Called before a step of `thread` that uses `file`: makes it wait for the last advice.
    pub fn before_use(&mut self, thread: u32, file: usize, threads: &mut [DraftThread]) {
        if self.last.replace((thread, file)) == Some((thread, file)) {
            return;
        }
        self.last_thread.insert(threads[thread as usize].process, thread);
        let order = self.file_order(file);
        let user = order.users.entry(thread).or_default();
        user.is_active = true;
        if std::mem::replace(&mut user.seen_advices, order.advices) < order.advices
            && let Some(step) = order.advised.filter(|step| step.thread != thread)
        {
            threads[thread as usize].drafts.wait_for(step);
        }
    }

    /// Called before advice of `thread` on `file`: makes it wait for all uses by other threads
    /// since the last advice.
    pub fn before_advice(&mut self, thread: u32, file: usize, threads: &mut [DraftThread]) {
        self.before_use(thread, file, threads);
        let users = self.file_order(file).users.iter_mut().filter(|(other, _)| **other != thread);
        let mut others: Vec<u32> = users
            .filter_map(|(other, user)| std::mem::take(&mut user.is_active).then_some(*other))
            .collect();
        others.sort_unstable();
        for other in others {
            if let Some(step) = threads[other as usize].drafts.seal() {
                threads[thread as usize].drafts.wait_for(StepRef { thread: other, step });
            }
        }
    }

    /// Called after the advice was added: later uses wait for it.
    pub fn after_advice(&mut self, thread: u32, file: usize, threads: &mut [DraftThread]) {
        self.last = None;
        let step = threads[thread as usize].drafts.seal();
        let order = self.file_order(file);
        order.advised = step.map(|step| StepRef { thread, step });
        order.advices += 1;
        let advices = order.advices;
        order.users.entry(thread).or_default().seen_advices = advices;
    }

    fn file_order(&mut self, file: usize) -> &mut FileOrder {
        if self.files.len() <= file {
            self.files.resize_with(file + 1, FileOrder::default);
        }
        &mut self.files[file]
    }
}
