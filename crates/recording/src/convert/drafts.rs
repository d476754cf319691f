//! The steps of a thread, before it is known which mappings the job has.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Pages;

/// A thread.
#[derive(Debug)]
pub struct DraftThread {
    pub process: u32,
    pub tid: u32,
    pub drafts: DraftSteps,
}

/// What a thread does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DraftStep {
    /// A mapping is made.
    Map { mapping: usize },
    /// A mapping is taken away.
    Unmap { mapping: usize },
    /// Pages of a mapping are touched.
    Touch { mapping: usize, is_write: bool, pages: Vec<u64>, think_ns: u64 },
    /// Blocks of one length are read.
    Read { open: u32, length_bytes: u64, offsets: Vec<u64>, think_ns: u64 },
    /// Advice for a part of a mapping.
    Madvise { mapping: usize, advice: &'static str, pages: Pages },
    /// Advice for an open file.
    Fadvise { open: u32, advice: &'static str, offset_bytes: u64, length_bytes: u64 },
}

/// A step of a thread, both as indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepRef {
    pub thread: u32,
    pub step: usize,
}

/// The steps of one thread, in order.
#[derive(Debug, Default)]
pub struct DraftSteps {
    pub steps: Vec<DraftStep>,
    /// What a step waits for, by its index.
    pub dependencies: BTreeMap<usize, Vec<StepRef>>,
    /// The steps that somebody waits for.
    pub awaited: BTreeSet<usize>,
    /// What the next step waits for.
    next_dependencies: Vec<StepRef>,
    /// The last of them that makes accesses: time to think is after one.
    last_access: Option<usize>,
}

impl DraftSteps {
    /// The last step is awaited as it is now. Returns its index.
    pub fn seal(&mut self) -> Option<usize> {
        let last = self.steps.len().checked_sub(1)?;
        self.awaited.insert(last);
        Some(last)
    }

    /// The next step waits for that of another thread.
    pub fn wait_for(&mut self, step: StepRef) {
        self.next_dependencies.push(step);
    }

    /// Whether the next step can be one with the last one.
    fn can_extend(&self) -> bool {
        let is_awaited = self.awaited.last().is_some_and(|last| last + 1 == self.steps.len());
        self.next_dependencies.is_empty() && !is_awaited
    }

    /// The thread thinks.
    pub fn add_think_time(&mut self, ns: u64) {
        if let Some(DraftStep::Touch { think_ns, .. } | DraftStep::Read { think_ns, .. }) =
            self.last_access.and_then(|at| self.steps.get_mut(at))
        {
            *think_ns = think_ns.saturating_add(ns);
        }
    }

    /// Adds a step, to the last one where both are one phase.
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

    /// Adds a touch.
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
