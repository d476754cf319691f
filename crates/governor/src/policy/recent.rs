//! The last faults that belonged to no stream, in which strides are found.

use crate::policy::step::Step;

/// Equal distances that make a stride.
const EQUAL: usize = 4;

/// Faults that may lie between two of one stride: as many threads can stride by turns, less one.
const TURNS: usize = 4;

/// Faults that are kept. The oldest that is looked at is the one this long ago.
const KEPT: usize = EQUAL * TURNS;

/// The last faults.
#[derive(Clone, Debug)]
pub struct Recent {
    pages: [u64; KEPT],
    /// Faults noted so far.
    noted: usize,
}

impl Recent {
    pub const NEW: Recent = Recent { pages: [0; KEPT], noted: 0 };

    /// Notes a fault.
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

    /// The same where each fault of the stride is `turns` faults behind the one before it.
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
