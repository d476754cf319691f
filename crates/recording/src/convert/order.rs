//! Order between threads. Advice on a file stays between the same accesses of all threads as in the
//! recording, and a thread starts after the steps that precede its first event. Threads that take
//! turns, as those that run one goroutine do, keep their turns.

use std::collections::HashMap;

use super::drafts::{DraftThread, StepRef};

/// Minimum number of uses of files that a thread makes in a row for the next thread of its process
/// to wait for them. Threads that run at the same time rarely leave each other so many.
const MIN_TURN_USES: u64 = 8;

/// Tracks which thread used which file last.
#[derive(Debug, Default)]
pub struct ThreadOrder {
    files: Vec<FileOrder>,
    /// Thread and file of the last use, for a fast path on repetitions; `None` after advice.
    last: Option<(u32, usize)>,
    /// The number of these repetitions that the turn of the thread lacks.
    repetitions: u64,
    /// By process: the last turn.
    turns: HashMap<u32, Turn>,
}

/// Uses of files by one thread, with none by the others of its process in between.
#[derive(Clone, Copy, Debug)]
struct Turn {
    thread: u32,
    uses: u64,
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
        let of_parent = || parent.and_then(|parent| self.turns.get(&parent));
        if let Some(turn) = self.turns.get(&process).or_else(of_parent) {
            wait_for_last(turn.thread, thread, threads);
        }
    }

    /// Called before a step of `thread` that uses `file`: makes it wait for the last advice.
    pub fn before_use(&mut self, thread: u32, file: usize, threads: &mut [DraftThread]) {
        if self.last == Some((thread, file)) {
            self.repetitions += 1;
            return;
        }
        self.before_turn(thread, threads);
        self.last = Some((thread, file));
        let order = self.file_order(file);
        let user = order.users.entry(thread).or_default();
        user.is_active = true;
        if std::mem::replace(&mut user.seen_advices, order.advices) < order.advices
            && let Some(step) = order.advised.filter(|step| step.thread != thread)
        {
            threads[thread as usize].drafts.wait_for(step);
        }
    }

    /// Counts a use by `thread`. If it begins a turn, it waits for that of the thread before.
    fn before_turn(&mut self, thread: u32, threads: &mut [DraftThread]) {
        if let Some((last, _)) = self.last {
            let turn = self.turns.get_mut(&threads[last as usize].process);
            let repetitions = std::mem::take(&mut self.repetitions);
            turn.into_iter().for_each(|turn| turn.uses += repetitions);
        }
        let turn = self.turns.entry(threads[thread as usize].process);
        let turn = turn.or_insert(Turn { thread, uses: 0 });
        if turn.thread != thread {
            if turn.uses >= MIN_TURN_USES {
                wait_for_last(turn.thread, thread, threads);
            }
            *turn = Turn { thread, uses: 0 };
        }
        turn.uses += 1;
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
            wait_for_last(other, thread, threads);
        }
    }

    /// Called after the advice was added: later uses wait for it.
    pub fn after_advice(&mut self, thread: u32, file: usize, threads: &mut [DraftThread]) {
        self.before_turn(thread, threads);
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

/// The next step of `thread` waits for the last one of `before`.
fn wait_for_last(before: u32, thread: u32, threads: &mut [DraftThread]) {
    if let Some(step) = threads[before as usize].drafts.seal() {
        threads[thread as usize].drafts.wait_for(StepRef { thread: before, step });
    }
}
