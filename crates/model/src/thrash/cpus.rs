//! CPUs, and the tasks that wait for one.

use std::collections::VecDeque;

use crate::mm::mmap_lock::TaskId;

/// CPUs with one queue: whoever waits longest gets the next one that is free.
#[derive(Clone, Debug)]
pub struct Cpus {
    idle: Vec<usize>,
    queue: VecDeque<TaskId>,
}

impl Cpus {
    /// So many, all idle.
    pub fn new(cpus: usize) -> Cpus {
        Cpus { idle: (0..cpus).rev().collect(), queue: VecDeque::new() }
    }

    /// `task` can run: on the CPU returned, or else it waits.
    pub fn ask(&mut self, task: TaskId) -> Option<usize> {
        let cpu = self.idle.pop();
        if cpu.is_none() {
            self.queue.push_back(task);
        }
        cpu
    }

    /// `cpu` is free: for the task returned, or else it is idle.
    pub fn leave(&mut self, cpu: usize) -> Option<TaskId> {
        let next = self.queue.pop_front();
        if next.is_none() {
            self.idle.push(cpu);
        }
        next
    }

    /// `task`, which has `cpu`, lets the one run that has waited longest, and waits itself.
    pub fn yield_to_next(&mut self, task: TaskId) -> Option<TaskId> {
        let next = self.queue.pop_front()?;
        self.queue.push_back(task);
        Some(next)
    }

    /// CPUs without a task.
    pub fn idle(&self) -> usize {
        self.idle.len()
    }
}
