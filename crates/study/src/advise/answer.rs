//! Which of the things that were tried is the answer.
//!
//! Times are predicted with the latency of the machine profile, and with half and double of it: a
//! device's latency moves about as much from one hour to the next. What is better at one of these
//! and worse at another is a tie.

use serde::{Deserialize, Serialize};

use super::trial::{Outcome, Trial};
use crate::explain::remedies::LEAST_SHARE;

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
        let (most, least) = (1.0 + LEAST_SHARE, 1.0 - LEAST_SHARE);
        let (pages, ns) = ((self.pages, now.pages), (self.ns[at], now.ns[at]));
        match () {
            () if pages.0 > pages.1 * most => Beside::ReadsMore,
            () if ns.0 > ns.1 * most => Beside::Slower,
            () if pages.0 < pages.1 * least || ns.0 < ns.1 * least => Beside::Better,
            () => Beside::Same,
        }
    }

    /// How it is beside `now` at the latency of the profile.
    pub fn verdict(self, now: Figures) -> Beside {
        self.beside(now, 0)
    }

    /// Whether it is an answer beside `now`, at latency number `at`.
    fn helps_at(self, now: Figures, at: usize) -> bool {
        self.beside(now, at) == Beside::Better
    }

    /// The same at the latency of the profile.
    pub fn helps(self, now: Figures) -> bool {
        self.helps_at(now, 0)
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

/// Something that may be the answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Its position in all that was tried.
    pub at: usize,
    pub figures: Figures,
    /// How far it reaches.
    pub reach: u32,
}

/// An answer; positions are those in `tried`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    /// What is best; `null` where nothing helps.
    pub best: Option<usize>,
    /// What may be as fast, the fastest first.
    pub ties: Vec<usize>,
    /// Whether it is no better than doing nothing at half or double the latency.
    pub ties_with_now: bool,
}

impl Answer {
    /// The answer among `tried`, beside what is done `now`: the fastest that neither reads more nor
    /// is slower. Of those that may be as fast it is the one that reads least, then the one that
    /// reaches least far.
    pub fn among(now: Figures, tried: impl IntoIterator<Item = Candidate>) -> Answer {
        let mut better: Vec<Candidate> =
            tried.into_iter().filter(|of| of.figures.helps(now)).collect();
        better.sort_by(|a, b| a.figures.ns[0].total_cmp(&b.figures.ns[0]));
        let Some(&fastest) = better.first() else { return Answer::default() };
        better.retain(|of| of.figures.may_be_as_fast(fastest.figures));
        let least = better.iter().map(|of| of.figures.pages).fold(f64::INFINITY, f64::min);
        let reads_least = |of: &&Candidate| of.figures.pages <= least * (1.0 + AS_GOOD);
        let best = better.iter().filter(reads_least).min_by_key(|of| of.reach);
        let best = *best.expect("the one that reads least is among them");
        Answer {
            best: Some(best.at),
            ties: better.iter().map(|of| of.at).filter(|at| *at != best.at).collect(),
            ties_with_now: (1..LATENCIES.len()).any(|at| !best.figures.helps_at(now, at)),
        }
    }

    /// The same among those of `trials` that a user can do and that are `wanted`.
    pub(super) fn for_users(
        now: Figures,
        trials: &[Trial],
        figures: impl Fn(&Outcome) -> Figures,
        wanted: impl Fn(usize, &Trial) -> bool,
    ) -> Answer {
        let all = trials.iter().enumerate();
        let open = all.filter(|(at, trial)| trial.is_for_users() && wanted(*at, trial));
        let candidate = |(at, trial): (usize, &Trial)| Candidate {
            at,
            figures: figures(&trial.outcome),
            reach: trial.reach(),
        };
        Answer::among(now, open.map(candidate))
    }

    /// The verdict on trial `at`, which comes to `own`.
    pub(super) fn verdict(&self, at: usize, own: Figures, now: Figures) -> &'static str {
        match own.verdict(now) {
            Beside::ReadsMore => "reads more",
            Beside::Slower => "slower",
            Beside::Same => "no change",
            Beside::Better if self.best == Some(at) => "best",
            Beside::Better if self.ties.contains(&at) => "tied",
            Beside::Better => "helps",
        }
    }

    /// The best and what is tied with it, the first so many of these.
    pub fn named(&self, most_ties: usize) -> Vec<usize> {
        self.best.into_iter().chain(self.ties.iter().copied().take(most_ties)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far it reaches, pages, and milliseconds at the latency of the profile, at half and at
    /// double of it.
    type Tried = (u32, u32, [f64; 3]);

    fn figures((_, pages, ms): Tried) -> Figures {
        Figures { pages: pages.into(), ns: ms.map(|ms| ms * 1e6) }
    }

    fn among(tried: &[Tried]) -> Answer {
        let of = |(at, tried): (usize, &Tried)| Candidate {
            at,
            figures: figures(*tried),
            reach: tried.0,
        };
        Answer::among(NOW, tried.iter().enumerate().map(of))
    }

    fn best(best: usize, ties: &[usize], ties_with_now: bool) -> Answer {
        Answer { best: Some(best), ties: ties.to_vec(), ties_with_now }
    }

    const NOW: Figures = Figures { pages: 1000.0, ns: [100e6, 90e6, 120e6] };

    #[test]
    fn the_fastest_wins_where_it_is_so_at_every_latency() {
        let slow = (0, 10, [50.0, 40.0, 70.0]);
        let fast = (4, 10, [20.0, 15.0, 30.0]);
        assert_eq!(among(&[slow, fast]), best(1, &[], false));
        assert_eq!(among(&[fast, slow]), best(0, &[], false));
    }

    #[test]
    fn where_the_order_turns_with_the_latency_it_is_a_tie() {
        let wide = (0, 500, [50.0, 48.0, 54.0]);
        let narrow = (0, 10, [60.0, 30.0, 118.0]);
        // The narrow one reads least, and is the answer; but at double latency it is no faster
        // than now, though it reads less.
        assert_eq!(among(&[wide, narrow]), best(1, &[0], false));
        let slower = (0, 10, [60.0, 30.0, 130.0]);
        assert_eq!(among(&[wide, slower]), best(1, &[0], true));
    }

    #[test]
    fn of_ties_the_one_that_reaches_least_far_wins() {
        let everywhere = (3, 10, [20.0, 15.0, 30.0]);
        let there = (0, 11, [21.0, 16.0, 31.0]);
        assert_eq!(among(&[everywhere, there]), best(1, &[0], false));
    }

    #[test]
    fn what_reads_more_or_is_slower_is_no_answer() {
        let more = (0, 1100, [10.0, 5.0, 20.0]);
        let slower = (0, 10, [110.0, 80.0, 200.0]);
        let same = (0, 990, [99.0, 89.0, 119.0]);
        assert_eq!(among(&[more, slower, same]), Answer::default());
        let verdicts = [more, slower, same].map(|tried| figures(tried).verdict(NOW));
        assert_eq!(verdicts, [Beside::ReadsMore, Beside::Slower, Beside::Same]);
        assert_eq!(among(&[]), Answer::default());
    }
}
