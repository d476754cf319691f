//! Steps that wait for steps of other threads, and barriers.

use filemap_job::program::{Job, ProgramThread, StepOf};

/// How far each thread is, and who waits for it.
#[derive(Debug)]
pub(super) struct Order<'p> {
    threads: &'p [ProgramThread],
    /// How many steps of each thread are done.
    done: Vec<usize>,
    /// The next of the steps of each thread that wait for others.
    next: Vec<usize>,
    /// The threads that wait.
    waiting: Vec<usize>,
}

impl<'p> Order<'p> {
    pub(super) fn new(threads: &'p [ProgramThread]) -> Order<'p> {
        let none = vec![0; threads.len()];
        Order { threads, done: none.clone(), next: none, waiting: Vec::new() }
    }

    /// Whether the next step of `thread` can begin. Where it cannot, the thread waits.
    pub(super) fn begins(&mut self, thread: usize) -> bool {
        let is_met = self.is_met(thread);
        if !is_met {
            self.waiting.push(thread);
        }
        is_met
    }

    fn is_met(&self, thread: usize) -> bool {
        match self.threads[thread].after.get(self.next[thread]) {
            Some((step, after)) if *step == self.done[thread] => {
                after.iter().all(|StepOf { thread, step }| self.done[*thread] > *step)
            }
            _ => true,
        }
    }

    /// A step of `thread` is done. Returns the threads that do not wait any more.
    pub(super) fn done(&mut self, thread: usize) -> Vec<usize> {
        let waits = self.threads[thread].after.get(self.next[thread]);
        self.next[thread] += usize::from(waits.is_some_and(|(step, _)| *step == self.done[thread]));
        self.done[thread] += 1;
        let waiting = std::mem::take(&mut self.waiting);
        let (free, waiting) = waiting.into_iter().partition(|other| self.is_met(*other));
        self.waiting = waiting;
        free
    }
}

/// Where threads wait for each other.
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
        Barriers(job.barriers.iter().map(|of| barrier(of.threads)).collect())
    }

    /// `thread` comes to a barrier. Returns the threads that waited for it, if it is the last; it
    /// waits otherwise.
    pub(super) fn comes(&mut self, barrier: usize, thread: usize) -> Option<Vec<usize>> {
        let Barrier { threads, waiting } = &mut self.0[barrier];
        if waiting.len() + 1 == *threads {
            return Some(std::mem::take(waiting));
        }
        waiting.push(thread);
        None
    }
}
