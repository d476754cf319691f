//! Chooses the answer among the changes that were tried.
//!
//! Times are predicted at the latency of the machine profile, at half and at double of it, since a
//! device's latency varies about that much from hour to hour. A change that is better at one of
//! these and worse at another is a tie.

use serde::{Deserialize, Serialize};

use crate::explain::MIN_SHARE;
use crate::verdict::{Margin, Verdict};

/// Latencies of predicted times, as factors of the profile's latency.
pub const LATENCIES: [f64; 3] = [1.0, 0.5, 2.0];

/// Relative difference in time or pages below which two changes are equally good.
pub(super) const TIE_SHARE: f64 = 0.10;

/// The figures by which runs are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialFigures {
    /// Pages read.
    pub pages: f64,
    /// Time in nanoseconds at each of [`LATENCIES`].
    pub ns: [f64; 3],
}

impl TrialFigures {
    /// Verdicts on pages and time at latency number `at`, compared with `now`.
    fn compare_with(self, now: TrialFigures, at: usize) -> [Verdict; 2] {
        let margin = Margin::share(MIN_SHARE);
        [(now.pages, self.pages), (now.ns[at], self.ns[at])]
            .map(|(now, own)| Verdict::from_exact(now, own, margin))
    }

    /// Whether it is faster than `now` at latency number `at`, whatever it reads, or reads less in
    /// the same time.
    fn helps_at(self, now: TrialFigures, at: usize) -> bool {
        use Verdict::{Less, NoDifference};
        matches!(self.compare_with(now, at), [_, Less] | [Less, NoDifference])
    }

    /// Like [`TrialFigures::helps_at`] at the latency of the profile. What reads more has to be
    /// faster by more than a tie, at every latency.
    pub fn helps(self, now: TrialFigures) -> bool {
        let reads_more = self.compare_with(now, 0)[0] == Verdict::More;
        let is_surely_faster =
            || !now.may_be_as_fast(self) && (0..LATENCIES.len()).all(|at| self.helps_at(now, at));
        self.helps_at(now, 0) && (!reads_more || is_surely_faster())
    }

    /// Whether `self` may be as fast as `best`, which is faster at the latency of the profile.
    fn may_be_as_fast(self, best: TrialFigures) -> bool {
        self.ns[0] <= best.ns[0] * (1.0 + TIE_SHARE)
            || self.ns.iter().zip(best.ns).any(|(own, best)| *own <= best)
    }
}

/// A candidate for the answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Index in the list of trials.
    pub at: usize,
    pub figures: TrialFigures,
    /// Scope of the change (see [`super::Change::reach`]).
    pub reach: u32,
}

/// An answer, as indexes into `tried`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    /// The best change; `null` if nothing helps.
    pub best: Option<usize>,
    /// Changes that may be as fast, the fastest first.
    pub ties: Vec<usize>,
    /// Whether doing nothing is as good at half or double the latency.
    pub ties_with_now: bool,
    /// The change that reads least without being slower than doing nothing, if it reads less than
    /// the best by more than a tie.
    #[serde(default)]
    pub reads_least: Option<usize>,
}

impl Answer {
    /// The answer among `tried`: the fastest. Among ties the one that reads least, then the one
    /// with the smallest scope.
    pub fn choose(now: TrialFigures, tried: impl IntoIterator<Item = Candidate>) -> Answer {
        let mut better: Vec<Candidate> =
            tried.into_iter().filter(|candidate| candidate.figures.helps(now)).collect();
        better.sort_by(|a, b| a.figures.ns[0].total_cmp(&b.figures.ns[0]));
        let Some(&fastest) = better.first() else { return Answer::default() };
        let by_pages = |a: &&Candidate, b: &&Candidate| a.figures.pages.total_cmp(&b.figures.pages);
        let most_frugal = *better.iter().min_by(by_pages).expect("one is the fastest");
        better.retain(|candidate| candidate.figures.may_be_as_fast(fastest.figures));
        let least =
            better.iter().map(|candidate| candidate.figures.pages).fold(f64::INFINITY, f64::min);
        let reads_least =
            |candidate: &&Candidate| candidate.figures.pages <= least * (1.0 + TIE_SHARE);
        let best = better.iter().filter(reads_least).min_by_key(|candidate| candidate.reach);
        let best = *best.expect("the one that reads least is among them");
        Answer {
            best: Some(best.at),
            ties: better.iter().map(|candidate| candidate.at).filter(|at| *at != best.at).collect(),
            ties_with_now: (1..LATENCIES.len()).any(|at| !best.figures.helps_at(now, at)),
            reads_least: (most_frugal.figures.pages * (1.0 + TIE_SHARE) < best.figures.pages)
                .then_some(most_frugal.at),
        }
    }

    /// Verdict on trial `at` with figures `own`.
    pub(super) fn verdict(&self, at: usize, own: TrialFigures, now: TrialFigures) -> &'static str {
        match own.compare_with(now, 0) {
            [_, Verdict::More] => "slower",
            [Verdict::More, Verdict::NoDifference] => "reads more",
            _ if !own.helps(now) => "no change",
            _ if self.best == Some(at) => "best",
            _ if self.ties.contains(&at) => "tied",
            _ => "helps",
        }
    }

    /// The best change and its first `most_ties` ties.
    pub fn named_candidates(&self, most_ties: usize) -> Vec<usize> {
        self.best.into_iter().chain(self.ties.iter().copied().take(most_ties)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scope, pages, and milliseconds at each of [`LATENCIES`].
    type TrialRow = (u32, u32, [f64; 3]);

    fn figures((_, pages, ms): TrialRow) -> TrialFigures {
        TrialFigures { pages: pages.into(), ns: ms.map(|ms| ms * 1e6) }
    }

    fn choose_from(tried: &[TrialRow]) -> Answer {
        let candidate = |(at, tried): (usize, &TrialRow)| Candidate {
            at,
            figures: figures(*tried),
            reach: tried.0,
        };
        Answer::choose(NOW, tried.iter().enumerate().map(candidate))
    }

    fn best(best: usize, ties: &[usize], ties_with_now: bool) -> Answer {
        Answer { best: Some(best), ties: ties.to_vec(), ties_with_now, reads_least: None }
    }

    const NOW: TrialFigures = TrialFigures { pages: 1000.0, ns: [100e6, 90e6, 120e6] };

    #[test]
    fn fastest_at_every_latency_wins() {
        let slow = (0, 10, [50.0, 40.0, 70.0]);
        let fast = (4, 10, [20.0, 15.0, 30.0]);
        assert_eq!(choose_from(&[slow, fast]), best(1, &[], false));
        assert_eq!(choose_from(&[fast, slow]), best(0, &[], false));
    }

    #[test]
    fn latency_dependent_order_is_a_tie() {
        let wide = (0, 500, [50.0, 48.0, 54.0]);
        let narrow = (0, 10, [60.0, 30.0, 118.0]);
        // The narrow one reads least and is the answer, though at double latency it is no faster
        // than doing nothing.
        assert_eq!(choose_from(&[wide, narrow]), best(1, &[0], false));
        let slower = (0, 10, [60.0, 30.0, 130.0]);
        assert_eq!(choose_from(&[wide, slower]), best(1, &[0], true));
    }

    #[test]
    fn narrowest_tie_wins() {
        let everywhere = (3, 10, [20.0, 15.0, 30.0]);
        let current = (0, 11, [21.0, 16.0, 31.0]);
        assert_eq!(choose_from(&[everywhere, current]), best(1, &[0], false));
    }

    #[test]
    fn faster_change_that_reads_more_is_an_answer() {
        let faster = (0, 1100, [20.0, 15.0, 30.0]);
        let frugal = (0, 10, [90.0, 80.0, 110.0]);
        let answer = Answer { reads_least: Some(1), ..best(0, &[], false) };
        assert_eq!(choose_from(&[faster, frugal]), answer);
        // At double latency it is no faster.
        let doubtful = (0, 1100, [20.0, 15.0, 125.0]);
        assert_eq!(choose_from(&[doubtful]), Answer::default());
        assert_eq!(choose_from(&[(0, 1100, [94.0, 84.0, 110.0])]), Answer::default());
    }

    #[test]
    fn slower_or_larger_change_is_no_answer() {
        let more = (0, 1100, [98.0, 88.0, 118.0]);
        let slower = (0, 10, [110.0, 80.0, 200.0]);
        let same = (0, 990, [99.0, 89.0, 119.0]);
        assert_eq!(choose_from(&[more, slower, same]), Answer::default());
        let none = Answer::default();
        let verdicts = [more, slower, same].map(|tried| none.verdict(0, figures(tried), NOW));
        assert_eq!(verdicts, ["reads more", "slower", "no change"]);
        assert_eq!(choose_from(&[]), Answer::default());
    }
}
