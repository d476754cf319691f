//! The answer: pages that are worth reading.

use crate::policy::pages::Pages;
use crate::policy::step::Step;

/// Pages to read: some adjacent ones, or single ones at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reads {
    start: u64,
    step: Step,
    /// Elements of the stream, the first and the one behind the last.
    from: u64,
    to: u64,
}

impl Reads {
    /// Nothing to read.
    pub const NONE: Reads = Reads { start: 0, step: Step::FORWARD, from: 0, to: 0 };

    /// The elements `from..to` of the stream that begins at `start`.
    pub(crate) const fn new(start: u64, step: Step, from: u64, to: u64) -> Reads {
        Reads { start, step, from, to }
    }

    /// How many pages these are.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// The pages as ranges, in the order in which the program will come to them.
    #[must_use]
    pub const fn ranges(&self) -> Pieces {
        self.pieces(u64::MAX)
    }

    /// The pages as ranges of at most `most` pages, and at least 1: what one call can ask for.
    #[must_use]
    pub const fn pieces(&self, most: u64) -> Pieces {
        let most = if most == 0 { 1 } else { most };
        Pieces { rest: *self, most }
    }
}

/// The ranges of [`Reads::pieces`].
#[derive(Clone, Debug)]
pub struct Pieces {
    rest: Reads,
    most: u64,
}

impl Iterator for Pieces {
    type Item = Pages;

    fn next(&mut self) -> Option<Pages> {
        let Reads { start, step, from, to } = self.rest;
        let left = self.rest.pages();
        if left == 0 {
            return None;
        }
        let count = if step.is_dense() { left.min(self.most) } else { 1 };
        let behind = from.saturating_add(count);
        self.rest.from = behind.min(to);
        let (one, other) = (step.page(start, from)?, step.page(start, behind.saturating_sub(1))?);
        Some(Pages { first: one.min(other), end: one.max(other).saturating_add(1) })
    }
}
