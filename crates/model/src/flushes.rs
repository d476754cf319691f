//! When the statistics of the lists are flushed.

use std::collections::VecDeque;

use filemap_core::lru::statistics::FLUSH_NS;

/// The flushes that are still to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flushes {
    /// Every two seconds of virtual time.
    Timed {
        /// When the next one is due.
        next_ns: u64,
    },
    /// Where a kernel had them: when so many accesses have begun, in ascending order.
    Seen(VecDeque<u64>),
}

impl Flushes {
    /// Those of a run on a machine whose time is predicted.
    pub const TIMED: Flushes = Flushes::Timed { next_ns: FLUSH_NS };

    /// What the record of a run says that has those of a kernel.
    pub const SEEN: &str = "where the kernel beside it had them";

    /// Those that a run on a kernel had.
    pub fn seen(begun: &[u64]) -> Flushes {
        Flushes::Seen(begun.iter().copied().collect())
    }

    /// Whether there was one since this was asked last, at `now_ns` and after `begun` accesses.
    #[inline]
    pub fn are_due(&mut self, now_ns: u64, begun: u64) -> bool {
        match self {
            Flushes::Timed { next_ns } => {
                let is_due = now_ns >= *next_ns;
                if is_due {
                    *next_ns = (now_ns - now_ns % FLUSH_NS).saturating_add(FLUSH_NS);
                }
                is_due
            }
            Flushes::Seen(seen) => {
                let mut is_due = false;
                while seen.front().is_some_and(|&at| at <= begun) {
                    seen.pop_front();
                    is_due = true;
                }
                is_due
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_that_were_seen_are_due_by_accesses_and_not_by_time() {
        let mut flushes = Flushes::seen(&[3, 3, 10]);
        let due: Vec<bool> =
            [2, 3, 4, 12, 13].map(|begun| flushes.are_due(9 * FLUSH_NS, begun)).into();
        assert_eq!(due, [false, true, false, true, false]);
        let mut timed = Flushes::TIMED;
        let due = [1, FLUSH_NS, FLUSH_NS + 1, 5 * FLUSH_NS, 6 * FLUSH_NS - 1];
        let due = due.map(|now_ns| timed.are_due(now_ns, 0));
        assert_eq!(due, [false, true, false, true, false]);
    }
}
