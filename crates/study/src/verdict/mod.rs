//! The verdict of every comparison: whether figures after a change are lower or higher than before,
//! or whether chance explains the difference.
//!
//! Independent runs are tested as two samples, alternating runs as pairs, since a slow phase of the
//! machine slows both runs of a pair. Predicted figures are exact, and only a margin decides.

mod permutation;

use filemap_job::Spread;

use permutation::paired_p_value;
pub use permutation::{SIGNIFICANCE_LEVEL, least_p_value, least_paired_p_value, p_value};

use crate::stats::{median, percent};

/// The direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Verdict {
    Less,
    More,
    /// The difference is within the margin, or chance explains it.
    NoDifference,
    /// Too few runs for the test to reach [`SIGNIFICANCE_LEVEL`].
    NotTested,
}

/// Differences too small to matter, even where they are statistically significant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// Absolute, in the unit of the figures.
    pub least: f64,
    /// Relative to the figure before.
    pub share: f64,
}

impl Margin {
    /// Every difference counts.
    pub const NONE: Margin = Margin::share(0.0);

    /// This share of the figure before.
    pub const fn share(share: f64) -> Margin {
        Margin { least: 0.0, share }
    }

    /// Whether `after` is within the margin of `before`.
    fn spans(self, before: f64, after: f64) -> bool {
        let margin = self.least.max(before * self.share);
        margin > 0.0 && (after - before).abs() <= margin
    }
}

impl Verdict {
    /// Compares exact figures, which need no test.
    pub fn from_exact(before: f64, after: f64, margin: Margin) -> Verdict {
        match () {
            () if margin.spans(before, after) => Verdict::NoDifference,
            () if after < before => Verdict::Less,
            () if after > before => Verdict::More,
            () => Verdict::NoDifference,
        }
    }

    /// Renders the verdict with words for the figure, such as [`TIME_WORDS`].
    pub const fn describe(self, [less, more]: [&'static str; 2]) -> &'static str {
        match self {
            Verdict::Less => less,
            Verdict::More => more,
            Verdict::NoDifference => "no difference shown",
            Verdict::NotTested => "not tested",
        }
    }
}

/// The words of a time.
pub const TIME_WORDS: [&str; 2] = ["faster", "slower"];

/// The words of an amount.
pub const AMOUNT_WORDS: [&str; 2] = ["less", "more"];

/// Samples before and after a change, tested.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct TestResult {
    pub verdict: Verdict,
    /// Median of the samples before the change; `after` likewise.
    pub before: f64,
    pub after: f64,
    /// Probability that chance alone separates the samples this much.
    pub p_value: f64,
    /// Smallest p-value that this number of runs can reach.
    pub least_p_value: f64,
    /// Number of runs before and after.
    pub runs: [usize; 2],
}

impl TestResult {
    /// Tests independent runs as two samples.
    pub fn unpaired(before: &[f64], after: &[f64], margin: Margin) -> TestResult {
        let least = least_p_value(before.len(), after.len());
        let tested = TestResult::not_tested([before, after], p_value(before, after), least);
        if margin.spans(tested.before, tested.after) {
            return tested;
        }
        tested.with_verdict(Verdict::from_exact(tested.before, tested.after, margin))
    }

    /// Tests alternating runs, equally many on both sides: the relative change within each pair.
    pub fn paired(before: &[f64], after: &[f64]) -> TestResult {
        let changes = before.iter().zip(after).filter_map(|(old, own)| percent(*own, *old));
        let changes: Vec<f64> = changes.collect();
        let least = least_paired_p_value(before.len().min(after.len()));
        let tested = TestResult::not_tested([before, after], paired_p_value(&changes), least);
        tested.with_verdict(Verdict::from_exact(0.0, median_or_zero(&changes), Margin::NONE))
    }

    /// Applies `verdict` where the test is significant.
    fn with_verdict(self, verdict: Verdict) -> TestResult {
        let verdict = match () {
            () if self.least_p_value > SIGNIFICANCE_LEVEL => Verdict::NotTested,
            () if self.p_value > SIGNIFICANCE_LEVEL => Verdict::NoDifference,
            () => verdict,
        };
        TestResult { verdict, ..self }
    }

    /// Medians and p-values, before the verdict is applied.
    fn not_tested(samples: [&[f64]; 2], p_value: f64, least_p_value: f64) -> TestResult {
        let [before, after] = samples.map(median_or_zero);
        let (verdict, runs) = (Verdict::NoDifference, samples.map(<[f64]>::len));
        TestResult { verdict, before, after, p_value, least_p_value, runs }
    }

    /// Change in percent of the median before; `None` if that is 0.
    pub fn change_percent(&self) -> Option<f64> {
        percent(self.after, self.before)
    }
}

/// Whether a lower-is-better figure rose by more than `margin` and noise. With too few runs for the
/// test, every run after has to be worse than every run before.
pub fn is_worse(before: &[f64], after: &[f64], margin: Margin) -> bool {
    if before.is_empty() || after.is_empty() {
        return false;
    }
    match TestResult::unpaired(before, after, margin).verdict {
        Verdict::Less | Verdict::NoDifference => false,
        Verdict::More => true,
        Verdict::NotTested => {
            let most = before.iter().copied().fold(f64::MIN, f64::max);
            after.iter().all(|own| *own > most)
        }
    }
}

/// Converts integer figures to samples.
pub fn samples(figures: impl IntoIterator<Item = u64>) -> Vec<f64> {
    figures.into_iter().map(|figure| figure as f64).collect()
}

/// The median; 0 for no samples.
pub fn median_or_zero(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    median(&sorted).unwrap_or(0.0)
}

/// Distance from the median, in standard deviations estimated from the MAD, beyond which a sample
/// is an outlier.
const OUTLIER_SDS: f64 = 3.5;

/// Standard deviation of a normal distribution in units of its MAD.
const SDS_PER_MAD: f64 = 1.4826;

/// Positions of the outliers. Empty if more than half of the samples are identical, since the MAD
/// is 0 then.
pub fn outliers(samples: &[u64]) -> Vec<usize> {
    let Some(spread) = Spread::from_samples(samples.iter().copied()) else { return Vec::new() };
    let limit = OUTLIER_SDS * SDS_PER_MAD * spread.mad;
    let far = |sample: u64| spread.mad > 0.0 && (sample as f64 - spread.median).abs() > limit;
    (0..samples.len()).filter(|&position| far(samples[position])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_are_far_from_the_median() {
        assert_eq!(outliers(&[10, 11, 12, 11, 90]), [4]);
        assert_eq!(outliers(&[10, 11, 12, 11, 13]), [0; 0]);
        assert_eq!(outliers(&[5, 5, 5, 9]), [0; 0], "no MAD, no measure");
        assert_eq!(outliers(&[]), [0; 0]);
    }

    fn verdict_between(before: &[u64], after: &[u64], margin: Margin) -> Verdict {
        let [before, after] = [before, after].map(|own| samples(own.iter().copied()));
        TestResult::unpaired(&before, &after, margin).verdict
    }

    #[test]
    fn separates_difference_chance_and_tie() {
        for (before, after, margin, verdict) in [
            (&[9; 3][..], &[1; 3][..], Margin::NONE, Verdict::NotTested),
            (&[9; 5], &[1; 5], Margin::NONE, Verdict::Less),
            (&[1; 5], &[9; 5], Margin::NONE, Verdict::More),
            (&[0; 5], &[0; 5], Margin::NONE, Verdict::NoDifference),
            (&[0; 3], &[0; 3], Margin::NONE, Verdict::NotTested),
            (&[1, 5, 9, 13, 17], &[2, 6, 10, 14, 18], Margin::NONE, Verdict::NoDifference),
            (&[100; 5], &[104; 5], Margin::share(0.05), Verdict::NoDifference),
            (&[100; 5], &[106; 5], Margin::share(0.05), Verdict::More),
            (&[100; 3], &[104; 3], Margin { least: 4.0, share: 0.01 }, Verdict::NoDifference),
        ] {
            assert_eq!(
                verdict_between(before, after, margin),
                verdict,
                "{before:?}, {after:?}, {margin:?}"
            );
        }
    }

    /// The machine slows down from pair to pair by more than the two runs of any pair differ.
    #[test]
    fn common_slowdown_cancels_in_pairs() {
        let before: Vec<f64> = (0..9).map(|pair| 100.0 + 50.0 * f64::from(pair)).collect();
        let after: Vec<f64> = before.iter().map(|own| own * 0.95).collect();
        let paired = TestResult::paired(&before, &after);
        assert_eq!((paired.verdict, paired.p_value), (Verdict::Less, 2.0 / 512.0));
        let unpaired = TestResult::unpaired(&before, &after, Margin::NONE);
        assert_eq!(unpaired.verdict, Verdict::NoDifference);
        let few = TestResult::paired(&before[..5], &after[..5]);
        assert_eq!(few.verdict.describe(TIME_WORDS), "not tested");
    }

    #[test]
    fn rise_beyond_noise_is_worse() {
        for (before, after, worse) in [
            (&[1][..], &[4096][..], true),
            (&[0], &[1], true),
            (&[0], &[0], false),
            (&[100], &[101], false),
            (&[100], &[102], true),
            (&[100], &[50], false),
            // Too few runs for the test: the ranges must not overlap.
            (&[10, 12], &[13, 14], true),
            (&[10, 12], &[12, 14], false),
            // By the permutation test: 2 of 252 ways.
            (&[10, 11, 12, 13, 14], &[20, 21, 22, 23, 24], true),
            (&[10, 11, 12, 13, 30], &[11, 12, 13, 14, 31], false),
            (&[], &[5], false),
        ] {
            let [first, own] = [before, after].map(|own| samples(own.iter().copied()));
            let is_worse = is_worse(&first, &own, Margin::share(0.01));
            assert_eq!(is_worse, worse, "{before:?}, {after:?}");
        }
    }

    #[test]
    fn exact_figures_need_no_test() {
        let verdict = |after| Verdict::from_exact(100.0, after, Margin::share(0.05));
        assert_eq!(
            [94.0, 95.0, 105.0].map(verdict),
            [Verdict::Less, Verdict::NoDifference, Verdict::NoDifference]
        );
        assert_eq!(verdict(106.0).describe(AMOUNT_WORDS), "more");
    }
}
