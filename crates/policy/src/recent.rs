//! The last faults that belonged to no stream, in which strides are found.

use crate::step::Step;

/// Equal distances that make a stride.
const EQUAL: usize = 4;

/// Faults that may lie between two of one stride: as many threads can stride by turns, less one.
const TURNS: usize = 4;

/// Faults of one thread that are kept. The oldest that is looked at is the one this long ago.
const KEPT: usize = EQUAL * TURNS;

/// Threads that have a place. Those that share one are taken as one.
const THREADS: u64 = 16;

/// The last faults of each thread.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    threads: [OfThread; THREADS as usize],
}

impl Recent {
    /// The faults of `thread`.
    pub const fn of(&mut self, thread: u64) -> &mut OfThread {
        &mut self.threads[(thread % THREADS) as usize]
    }
}

/// The last faults of one thread.
#[derive(Clone, Debug, Default)]
pub struct OfThread {
    pages: [u64; KEPT],
    /// Faults noted so far.
    noted: usize,
    /// The last fault, whether it belonged to a stream or not.
    last: Option<u64>,
}

impl OfThread {
    /// Notes a fault, of a stream or not. Says whether the one before was on an adjacent page.
    pub fn comes_to(&mut self, page: u64) -> bool {
        self.last.replace(page).is_some_and(|last| last.abs_diff(page) == 1)
    }

    /// Notes a fault that belonged to no stream.
    pub fn note(&mut self, page: u64) {
        let place = self.noted % KEPT;
        if let Some(kept) = self.pages.get_mut(place) {
            *kept = page;
        }
        self.noted = self.noted.wrapping_add(1);
    }

    /// The step of the stride that a fault at `page`, not noted yet, goes on with. Distances of one
    /// page make a stream of another kind.
    pub fn stride(&self, page: u64) -> Option<Step> {
        (1..=TURNS).find_map(|turns| self.stride_by_turns(page, turns))
    }

    /// The same where each fault of the stride is `turns` faults after the one before it.
    fn stride_by_turns(&self, page: u64, turns: usize) -> Option<Step> {
        let step = Step::between(self.ago(turns)?, page)?;
        if step.is_dense() {
            return None;
        }
        let mut later = self.ago(turns)?;
        for number in 2..=EQUAL {
            let earlier = self.ago(number.checked_mul(turns)?)?;
            if Step::between(earlier, later) != Some(step) {
                return None;
            }
            later = earlier;
        }
        Some(step)
    }

    /// The page of the fault so many ago; that of the last one is 1 ago.
    fn ago(&self, ago: usize) -> Option<u64> {
        let number = self.noted.checked_sub(ago)?;
        if ago > KEPT {
            return None;
        }
        self.pages.get(number % KEPT).copied()
    }
}
