//! The steps of a thread, before it is known which mappings the job has.

use crate::event::Pages;

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

/// The steps of one thread, in order.
#[derive(Debug, Default)]
pub struct Drafts {
    pub steps: Vec<Draft>,
    /// The last of them that makes accesses: time to think is behind one.
    last_access: Option<usize>,
}

impl Drafts {
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
        match (self.steps.last_mut(), &step) {
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
        self.steps.push(step);
    }

    /// Adds a touch.
    pub fn touch(&mut self, mapping: usize, is_write: bool, page: u64) {
        if let Some(Draft::Touch { mapping: same, is_write: writes, pages, .. }) =
            self.steps.last_mut()
            && (mapping, is_write) == (*same, *writes)
        {
            pages.push(page);
            return;
        }
        self.push(Draft::Touch { mapping, is_write, pages: vec![page], think_ns: 0 });
    }
}
