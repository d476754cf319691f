//! Dependencies between steps of threads, and barriers.

use filemap_job::program::{Job, Thread, ThreadStep};

/// The progress of each thread, and the threads waiting for others.
#[derive(Debug)]
pub(super) struct StepOrder<'p> {
    threads: &'p [Thread],
    /// Finished steps per thread.
    done: Vec<usize>,
    /// Per thread, its next entry in `after`.
    next: Vec<usize>,
    /// Threads that wait.
    waiting: Vec<usize>,
}

impl<'p> StepOrder<'p> {
    pub(super) fn new(threads: &'p [Thread]) -> StepOrder<'p> {
        let none = vec![0; threads.len()];
        StepOrder { threads, done: none.clone(), next: none, waiting: Vec::new() }
    }

    /// Whether the next step of `thread` may begin. Otherwise the thread is noted as waiting.
    pub(super) fn try_begin(&mut self, thread: usize) -> bool {
        let is_met = self.is_ready(thread);
        if !is_met {
            self.waiting.push(thread);
        }
        is_met
    }

    fn is_ready(&self, thread: usize) -> bool {
        match self.threads[thread].after.get(self.next[thread]) {
            Some((step, after)) if *step == self.done[thread] => {
                after.iter().all(|ThreadStep { thread, step }| self.done[*thread] > *step)
            }
            _ => true,
        }
    }

    /// Counts a finished step of `thread`. Returns the threads that may proceed.
    pub(super) fn complete_step(&mut self, thread: usize) -> Vec<usize> {
        let waits = self.threads[thread].after.get(self.next[thread]);
        self.next[thread] += usize::from(waits.is_some_and(|(step, _)| *step == self.done[thread]));
        self.done[thread] += 1;
        let waiting = std::mem::take(&mut self.waiting);
        let (free, waiting) = waiting.into_iter().partition(|other| self.is_ready(*other));
        self.waiting = waiting;
        free
    }
}

/// The barriers of a job.
#[derive(Debug)]
pub(super) struct Barriers(Vec<Barrier>);

#[derive(Debug)]
struct Barrier {
    threads: usize,
    waiting: Vec<usize>,
}

impl Barriers {
    pub(super) fn new(job: &Job) -> Barriers {
        let barrier = |threads| Barrier { threads, waiting: Vec::new() };
        Barriers(job.barriers.iter().map(|spec| barrier(spec.threads)).collect())
    }

    /// `thread` arrives at a barrier. The last thread to arrive gets the waiting ones; for others
    /// the result is `None`, and they wait.
    pub(super) fn arrive(&mut self, barrier: usize, thread: usize) -> Option<Vec<usize>> {
        let Barrier { threads, waiting } = &mut self.0[barrier];
        if waiting.len() + 1 == *threads {
            return Some(std::mem::take(waiting));
        }
        waiting.push(thread);
        None
    }
}
