//! The steps of a thread, before it is known which mappings the job has.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Pages;

/// A thread.
#[derive(Debug)]
pub struct Thread {
    pub process: u32,
    pub tid: u32,
    pub drafts: Drafts,
}

/// What a thread does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draft {
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
pub struct StepOf {
    pub thread: u32,
    pub step: usize,
}

/// The steps of one thread, in order.
#[derive(Debug, Default)]
pub struct Drafts {
    pub steps: Vec<Draft>,
    /// What a step waits for, by its index.
    pub after: BTreeMap<usize, Vec<StepOf>>,
    /// The steps that somebody waits for.
    pub awaited: BTreeSet<usize>,
    /// What the next step waits for.
    waits_for: Vec<StepOf>,
    /// The last of them that makes accesses: time to think is after one.
    last_access: Option<usize>,
}

impl Drafts {
    /// The last step is awaited as it is now. Returns its index.
    pub fn seal(&mut self) -> Option<usize> {
        let last = self.steps.len().checked_sub(1)?;
        self.awaited.insert(last);
        Some(last)
    }

    /// The next step waits for that of another thread.
    pub fn wait_for(&mut self, step: StepOf) {
        self.waits_for.push(step);
    }

    /// Whether the next step can be one with the last one.
    fn goes_on(&self) -> bool {
        let is_awaited = self.awaited.last().is_some_and(|last| last + 1 == self.steps.len());
        self.waits_for.is_empty() && !is_awaited
    }

    /// The thread thinks.
    pub fn think(&mut self, ns: u64) {
        if let Some(Draft::Touch { think_ns, .. } | Draft::Read { think_ns, .. }) =
            self.last_access.and_then(|at| self.steps.get_mut(at))
        {
            *think_ns = think_ns.saturating_add(ns);
        }
    }

    /// Adds a step, to the last one where both are one phase.
    pub fn push(&mut self, step: Draft) {
        let goes_on = self.goes_on();
        match (self.steps.last_mut().filter(|_| goes_on), &step) {
            (
                Some(Draft::Touch { mapping, is_write, pages, think_ns }),
                Draft::Touch { mapping: same, is_write: writes, pages: more, think_ns: thinks },
            ) if mapping == same && is_write == writes => {
                pages.extend(more);
                *think_ns = think_ns.saturating_add(*thinks);
                return;
            }
            (
                Some(Draft::Read { open, length_bytes, offsets, think_ns }),
                Draft::Read { open: same, length_bytes: length, offsets: more, think_ns: thinks },
            ) if open == same && length_bytes == length => {
                offsets.extend(more);
                *think_ns = think_ns.saturating_add(*thinks);
                return;
            }
            _ => {}
        }
        if matches!(step, Draft::Touch { .. } | Draft::Read { .. }) {
            self.last_access = Some(self.steps.len());
        }
        if !self.waits_for.is_empty() {
            self.after.insert(self.steps.len(), std::mem::take(&mut self.waits_for));
        }
        self.steps.push(step);
    }

    /// Adds a touch.
    pub fn touch(&mut self, mapping: usize, is_write: bool, page: u64) {
        let goes_on = self.goes_on();
        if let Some(Draft::Touch { mapping: same, is_write: writes, pages, .. }) =
            self.steps.last_mut()
            && goes_on
            && (mapping, is_write) == (*same, *writes)
        {
            pages.push(page);
            return;
        }
        self.push(Draft::Touch { mapping, is_write, pages: vec![page], think_ns: 0 });
    }
}
