//! The order between threads: advice for a file comes between the same accesses of all threads as
//! in the recording, and a thread begins after what was done before its first event.

use std::collections::HashMap;

use super::drafts::{StepOf, Thread};

/// What threads do with each file.
#[derive(Debug, Default)]
pub struct Order {
    files: Vec<OfFile>,
    /// Who did something with which file last, where nothing else has come since.
    last: Option<(u32, usize)>,
    /// Which thread of each process did something last.
    last_of: HashMap<u32, u32>,
}

#[derive(Debug, Default)]
struct OfFile {
    users: HashMap<u32, User>,
    /// The last advice for it, and how many there were.
    advised: Option<StepOf>,
    advices: usize,
}

/// A thread that uses a file.
#[derive(Debug, Default)]
struct User {
    /// So many advices are in front of its next step.
    behind: usize,
    /// It has done something with it since the last advice.
    is_active: bool,
}

impl Order {
    /// Thread number `thread` begins, in a process that `parent` made.
    pub fn begin(&mut self, thread: u32, parent: Option<u32>, threads: &mut [Thread]) {
        let process = threads[thread as usize].process;
        let of_parent = || parent.and_then(|parent| self.last_of.get(&parent));
        let before = self.last_of.get(&process).or_else(of_parent).copied();
        if let Some(before) = before
            && let Some(step) = threads[before as usize].drafts.seal()
        {
            threads[thread as usize].drafts.wait_for(StepOf { thread: before, step });
        }
    }

    /// The next step of `thread` is about `file`.
    pub fn uses(&mut self, thread: u32, file: usize, threads: &mut [Thread]) {
        if self.last.replace((thread, file)) == Some((thread, file)) {
            return;
        }
        self.last_of.insert(threads[thread as usize].process, thread);
        let of = self.of(file);
        let user = of.users.entry(thread).or_default();
        user.is_active = true;
        if std::mem::replace(&mut user.behind, of.advices) < of.advices
            && let Some(step) = of.advised.filter(|step| step.thread != thread)
        {
            threads[thread as usize].drafts.wait_for(step);
        }
    }

    /// The next step of `thread` is advice for `file`.
    pub fn advises(&mut self, thread: u32, file: usize, threads: &mut [Thread]) {
        self.uses(thread, file, threads);
        let users = self.of(file).users.iter_mut().filter(|(other, _)| **other != thread);
        let mut others: Vec<u32> = users
            .filter_map(|(other, user)| std::mem::take(&mut user.is_active).then_some(*other))
            .collect();
        others.sort_unstable();
        for other in others {
            if let Some(step) = threads[other as usize].drafts.seal() {
                threads[thread as usize].drafts.wait_for(StepOf { thread: other, step });
            }
        }
    }

    /// It was that.
    pub fn advised(&mut self, thread: u32, file: usize, threads: &mut [Thread]) {
        self.last = None;
        let step = threads[thread as usize].drafts.seal();
        let of = self.of(file);
        of.advised = step.map(|step| StepOf { thread, step });
        of.advices += 1;
        let advices = of.advices;
        of.users.entry(thread).or_default().behind = advices;
    }

    fn of(&mut self, file: usize) -> &mut OfFile {
        if self.files.len() <= file {
            self.files.resize_with(file + 1, OfFile::default);
        }
        &mut self.files[file]
    }
}
