//! Steps of threads in terms of recorded objects, before the tables of the job are known.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::MappingPages;

/// A recorded thread with its steps.
#[derive(Debug)]
pub struct DraftThread {
    pub process: u32,
    pub tid: u32,
    pub drafts: DraftSteps,
}

/// A step, which becomes a phase of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DraftStep {
    /// mmap(2).
    Map { mapping: usize },
    /// munmap(2) of a whole mapping.
    Unmap { mapping: usize },
    /// Touches of pages of a mapping, in order; `think_ns` is the sum of all think times.
    Touch { mapping: usize, is_write: bool, pages: Vec<u64>, think_ns: u64 },
    /// Reads of one block size at byte offsets, in order; `think_ns` is the sum of all think times.
    Read { open: u32, length_bytes: u64, offsets: Vec<u64>, think_ns: u64 },
    /// madvise(2) on pages of a mapping.
    Madvise { mapping: usize, advice: &'static str, pages: MappingPages },
    /// Changes the anonymous memory of the program by this number of pages.
    Memory { pages: i64 },
    /// posix_fadvise(2) on an open file.
    Fadvise { open: u32, advice: &'static str, offset_bytes: u64, length_bytes: u64 },
}

/// A step, by index of its thread and index within the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepRef {
    pub thread: u32,
    pub step: usize,
}

/// The steps of one thread, in order.
#[derive(Debug, Default)]
pub struct DraftSteps {
    pub steps: Vec<DraftStep>,
    /// By step index: the steps of other threads that it waits for.
    pub dependencies: BTreeMap<usize, Vec<StepRef>>,
    /// Steps that other threads wait for.
    pub awaited: BTreeSet<usize>,
    /// The dependencies of the next step.
    next_dependencies: Vec<StepRef>,
    /// The last step with accesses, to which think time is added.
    last_access: Option<usize>,
}

impl DraftSteps {
    /// Makes the last step one that others wait for, which nothing is appended to any more. Returns
    /// its index; `None` without steps.
    pub fn seal(&mut self) -> Option<usize> {
        let last = self.steps.len().checked_sub(1)?;
        self.awaited.insert(last);
        Some(last)
    }

    /// Makes the next step wait for a step of another thread.
    pub fn wait_for(&mut self, step: StepRef) {
        self.next_dependencies.push(step);
    }

    /// Whether the next step may be merged into the last one: neither the end of the last nor the
    /// start of the next is a synchronization point.
    fn can_extend(&self) -> bool {
        let is_awaited = self.awaited.last().is_some_and(|last| last + 1 == self.steps.len());
        self.next_dependencies.is_empty() && !is_awaited
    }

    /// Adds think time after the last access; dropped before the first.
    pub fn add_think_time(&mut self, ns: u64) {
        if let Some(DraftStep::Touch { think_ns, .. } | DraftStep::Read { think_ns, .. }) =
            self.last_access.and_then(|at| self.steps.get_mut(at))
        {
            *think_ns = think_ns.saturating_add(ns);
        }
    }

    /// Adds a step, merged into the last one if both fit in one phase.
    pub fn push(&mut self, step: DraftStep) {
        let goes_on = self.can_extend();
        match (self.steps.last_mut().filter(|_| goes_on), &step) {
            (
                Some(DraftStep::Touch { mapping, is_write, pages, think_ns }),
                DraftStep::Touch { mapping: same, is_write: writes, pages: more, think_ns: thinks },
            ) if mapping == same && is_write == writes => {
                pages.extend(more);
                *think_ns = think_ns.saturating_add(*thinks);
                return;
            }
            (
                Some(DraftStep::Read { open, length_bytes, offsets, think_ns }),
                DraftStep::Read {
                    open: same,
                    length_bytes: length,
                    offsets: more,
                    think_ns: thinks,
                },
            ) if open == same && length_bytes == length => {
                offsets.extend(more);
                *think_ns = think_ns.saturating_add(*thinks);
                return;
            }
            _ => {}
        }
        if matches!(step, DraftStep::Touch { .. } | DraftStep::Read { .. }) {
            self.last_access = Some(self.steps.len());
        }
        if !self.next_dependencies.is_empty() {
            self.dependencies.insert(self.steps.len(), std::mem::take(&mut self.next_dependencies));
        }
        self.steps.push(step);
    }

    /// Adds a touch, merged like [`DraftSteps::push`] but without an allocation per touch.
    pub fn push_touch(&mut self, mapping: usize, is_write: bool, page: u64) {
        let goes_on = self.can_extend();
        if let Some(DraftStep::Touch { mapping: same, is_write: writes, pages, .. }) =
            self.steps.last_mut()
            && goes_on
            && (mapping, is_write) == (*same, *writes)
        {
            pages.push(page);
            return;
        }
        self.push(DraftStep::Touch { mapping, is_write, pages: vec![page], think_ns: 0 });
    }
}
