//! Which of the things that were tried is the answer.
//!
//! Times are predicted with the latency of the machine profile, and with half and double of it: a
//! device's latency moves about as much from one hour to the next. What is better at one of these
//! and worse at another is a tie.

use crate::explain::remedies::LEAST_SHARE;
use crate::verdict::{Margin, Verdict};

/// Latencies that times are predicted with, as factors of that of the profile.
pub const LATENCIES: [f64; 3] = [1.0, 0.5, 2.0];

/// Times that differ by less than this share are as good, and so are counts of pages.
const AS_GOOD: f64 = 0.10;

/// What counts of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Pages that were read.
    pub pages: f64,
    /// Nanoseconds, at each of [`LATENCIES`].
    pub ns: [f64; 3],
}

impl Figures {
    /// How it is beside `now`, at latency number `at`.
    fn beside(self, now: Figures, at: usize) -> Beside {
        let margin = Margin::share(LEAST_SHARE);
        let pages = Verdict::of_exact(now.pages, self.pages, margin);
        let ns = Verdict::of_exact(now.ns[at], self.ns[at], margin);
        match (pages, ns) {
            (Verdict::More, _) => Beside::ReadsMore,
            (_, Verdict::More) => Beside::Slower,
            (Verdict::Less, _) | (_, Verdict::Less) => Beside::Better,
            _ => Beside::Same,
        }
    }

    /// How it is beside `now` at the latency of the profile.
    pub fn verdict(self, now: Figures) -> Beside {
        self.beside(now, 0)
    }

    fn is_better(self, now: Figures, at: usize) -> bool {
        self.beside(now, at) == Beside::Better
    }

    /// Whether a run with `self` may be as fast as one with `best`, which is the faster at the
    /// latency of the profile.
    fn may_be_as_fast(self, best: Figures) -> bool {
        self.ns[0] <= best.ns[0] * (1.0 + AS_GOOD)
            || self.ns.iter().zip(best.ns).any(|(own, best)| *own <= best)
    }
}

/// How a run is beside another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// It reads less or is faster, and neither reads more nor is slower.
    Better,
    /// There is no difference to speak of.
    Same,
    /// It takes longer.
    Slower,
    /// It reads more.
    ReadsMore,
}

/// Something that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// What came out.
    pub figures: Figures,
    /// How far it reaches, by [`super::Change::reach`]; of several together the sum and more.
    pub reach: u32,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Nothing reads less or is faster.
    Nothing,
    /// This is best.
    Best {
        /// Which, as an index.
        best: usize,
        /// What may be as fast, as indexes, the fastest first.
        ties: Vec<usize>,
        /// At half or double the latency it is no better than what is done now.
        ties_with_now: bool,
    },
}

/// The answer among `tried`, beside what is done `now`: the fastest that neither reads more nor is
/// slower. Of those that may be as fast it is the one that reads least, then the one that reaches
/// least far.
pub fn choose(now: Figures, tried: &[Tried]) -> Choice {
    let of = |index: usize| tried[index].figures;
    let mut better: Vec<usize> =
        (0..tried.len()).filter(|index| of(*index).is_better(now, 0)).collect();
    better.sort_by(|a, b| of(*a).ns[0].total_cmp(&of(*b).ns[0]));
    let Some(&fastest) = better.first() else { return Choice::Nothing };
    better.retain(|index| of(*index).may_be_as_fast(of(fastest)));
    let least = better.iter().map(|index| of(*index).pages).fold(f64::INFINITY, f64::min);
    let reads_least = |index: &&usize| of(**index).pages <= least * (1.0 + AS_GOOD);
    let best = better.iter().filter(reads_least).min_by_key(|index| tried[**index].reach);
    let best = *best.expect("the one that reads least is among them");
    let ties = better.into_iter().filter(|index| *index != best).collect();
    let ties_with_now = (1..LATENCIES.len()).any(|at| !of(best).is_better(now, at));
    Choice::Best { best, ties, ties_with_now }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds at the latency of the profile, at half and at double of it.
    fn figures(pages: u32, ms: [f64; 3]) -> Figures {
        Figures { pages: pages.into(), ns: ms.map(|ms| ms * 1e6) }
    }

    fn tried(reach: u32, pages: u32, ms: [f64; 3]) -> Tried {
        Tried { figures: figures(pages, ms), reach }
    }

    fn best(best: usize, ties: &[usize], ties_with_now: bool) -> Choice {
        Choice::Best { best, ties: ties.to_vec(), ties_with_now }
    }

    const NOW: Figures = Figures { pages: 1000.0, ns: [100e6, 90e6, 120e6] };

    #[test]
    fn the_fastest_wins_where_it_is_so_at_every_latency() {
        let slow = tried(0, 10, [50.0, 40.0, 70.0]);
        let fast = tried(4, 10, [20.0, 15.0, 30.0]);
        assert_eq!(choose(NOW, &[slow, fast]), best(1, &[], false));
        assert_eq!(choose(NOW, &[fast, slow]), best(0, &[], false));
    }

    #[test]
    fn where_the_order_turns_with_the_latency_it_is_a_tie() {
        let wide = tried(0, 500, [50.0, 48.0, 54.0]);
        let narrow = tried(0, 10, [60.0, 30.0, 118.0]);
        // The narrow one reads least, and is the answer; but at double latency it is no faster
        // than now, though it reads less.
        assert_eq!(choose(NOW, &[wide, narrow]), best(1, &[0], false));
        let slower = tried(0, 10, [60.0, 30.0, 130.0]);
        assert_eq!(choose(NOW, &[wide, slower]), best(1, &[0], true));
    }

    #[test]
    fn of_ties_the_one_that_reaches_least_far_wins() {
        let everywhere = tried(3, 10, [20.0, 15.0, 30.0]);
        let there = tried(0, 11, [21.0, 16.0, 31.0]);
        assert_eq!(choose(NOW, &[everywhere, there]), best(1, &[0], false));
    }

    #[test]
    fn what_reads_more_or_is_slower_is_no_answer() {
        let more = tried(0, 1100, [10.0, 5.0, 20.0]);
        let slower = tried(0, 10, [110.0, 80.0, 200.0]);
        let same = tried(0, 990, [99.0, 89.0, 119.0]);
        assert_eq!(choose(NOW, &[more, slower, same]), Choice::Nothing);
        let verdicts = [more, slower, same].map(|tried| tried.figures.verdict(NOW));
        assert_eq!(verdicts, [Beside::ReadsMore, Beside::Slower, Beside::Same]);
        assert_eq!(choose(NOW, &[]), Choice::Nothing);
    }
}
