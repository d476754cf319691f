//! The order between threads: advice for a file comes between the same accesses of all threads as
//! in the recording, and a thread begins after what was done before its first event.

use std::collections::HashMap;

use super::drafts::{DraftThread, StepRef};

/// What threads do with each file.
#[derive(Debug, Default)]
pub struct ThreadOrder {
    files: Vec<FileOrder>,
    /// Who did something with which file last, where nothing else has come since.
    last: Option<(u32, usize)>,
    /// Which thread of each process did something last.
    last_thread: HashMap<u32, u32>,
}

#[derive(Debug, Default)]
struct FileOrder {
    users: HashMap<u32, FileUser>,
    /// The last advice for it, and how many there were.
    advised: Option<StepRef>,
    advices: usize,
}

/// A thread that uses a file.
#[derive(Debug, Default)]
struct FileUser {
    /// So many advices are in front of its next step.
    seen_advices: usize,
    /// It has done something with it since the last advice.
    is_active: bool,
}

impl ThreadOrder {
    /// Thread number `thread` begins, in a process that `parent` made.
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

    /// The next step of `thread` is about `file`.
    pub fn before_use(&mut self, thread: u32, file: usize, threads: &mut [DraftThread]) {
        if self.last.replace((thread, file)) == Some((thread, file)) {
            return;
        }
        self.last_thread.insert(threads[thread as usize].process, thread);
        let of = self.file_order(file);
        let user = of.users.entry(thread).or_default();
        user.is_active = true;
        if std::mem::replace(&mut user.seen_advices, of.advices) < of.advices
            && let Some(step) = of.advised.filter(|step| step.thread != thread)
        {
            threads[thread as usize].drafts.wait_for(step);
        }
    }

    /// The next step of `thread` is advice for `file`.
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

    /// It was that.
    pub fn after_advice(&mut self, thread: u32, file: usize, threads: &mut [DraftThread]) {
        self.last = None;
        let step = threads[thread as usize].drafts.seal();
        let of = self.file_order(file);
        of.advised = step.map(|step| StepRef { thread, step });
        of.advices += 1;
        let advices = of.advices;
        of.users.entry(thread).or_default().seen_advices = advices;
    }

    fn file_order(&mut self, file: usize) -> &mut FileOrder {
        if self.files.len() <= file {
            self.files.resize_with(file + 1, FileOrder::default);
        }
        &mut self.files[file]
    }
}
