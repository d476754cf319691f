//! Statistics of samples.

use serde::{Deserialize, Serialize};

/// Definition of the MAD, for reports that show one.
pub(crate) const MAD: &str =
    "The MAD is the median of the distances of all figures from their median.";

/// Samples with their descriptive statistics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SampleStats {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median; the mean of the two middle samples for an even number.
    pub median: f64,
    /// Sample standard deviation (n - 1 in the denominator); 0 for a single sample.
    pub sd: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Clusters that lie more than a factor of 2 apart, in ascending order.
    pub modes: Vec<Mode>,
    /// All samples in the order of the runs.
    pub samples: Vec<f64>,
}

/// A cluster of samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Mode {
    /// Number of samples.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// The smallest of them.
    pub min: f64,
    /// The largest of them.
    pub max: f64,
}

impl SampleStats {
    /// Statistics of `samples`; `None` if empty.
    pub fn from_sorted(samples: Vec<f64>) -> Option<SampleStats> {
        let mut sorted = samples.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let mean = mean(&sorted);
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        Some(SampleStats {
            mean,
            median: median(&sorted)?,
            sd: (squares / (sorted.len().max(2) - 1) as f64).sqrt(),
            min,
            max,
            modes: sorted.chunk_by(|low, high| *high <= 2.0 * low).map(Mode::from_sorted).collect(),
            samples,
        })
    }

    /// Whether `figure` lies between the minimum and the maximum.
    pub fn spans(&self, figure: f64) -> bool {
        (self.min..=self.max).contains(&figure)
    }
}

impl Mode {
    fn from_sorted(sorted: &[f64]) -> Mode {
        Mode {
            count: sorted.len(),
            mean: mean(sorted),
            min: sorted[0],
            max: sorted[sorted.len() - 1],
        }
    }
}

pub use filemap_report::units::percent;

/// The median of `sorted`; `None` if empty.
pub(crate) fn median(sorted: &[f64]) -> Option<f64> {
    let (low, high) =
        (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples() {
        assert_eq!(SampleStats::from_sorted(vec![]), None);
        let one = SampleStats::from_sorted(vec![3.0]).unwrap();
        assert_eq!((one.mean, one.median, one.sd, one.min, one.max), (3.0, 3.0, 0.0, 3.0, 3.0));
        let four = SampleStats::from_sorted(vec![9.0, 1.0, 3.0, 3.0]).unwrap();
        assert_eq!((four.mean, four.median, four.min, four.max), (4.0, 3.0, 1.0, 9.0));
        assert_eq!(four.sd, 12f64.sqrt());
        assert_eq!(four.samples, [9.0, 1.0, 3.0, 3.0]);
        assert!(four.spans(1.0) && four.spans(9.0) && !four.spans(0.9) && !four.spans(9.1));
    }

    #[test]
    fn modes_are_a_factor_of_two_apart() {
        let modes = |samples: &[f64]| -> Vec<(usize, f64)> {
            let sample = SampleStats::from_sorted(samples.to_vec()).unwrap();
            sample.modes.iter().map(|mode| (mode.count, mode.mean)).collect()
        };
        assert_eq!(modes(&[223.0, 1.0, 224.0, 1.5]), [(2, 1.25), (2, 223.5)]);
        assert_eq!(modes(&[1.0, 2.0, 4.0]), [(3, 7.0 / 3.0)]);
        assert_eq!(modes(&[1.0, 2.1]), [(1, 1.0), (1, 2.1)]);
        assert_eq!(modes(&[0.0, 0.0]), [(2, 0.0)]);
    }

    #[test]
    fn percents() {
        assert_eq!(percent(110.0, 100.0), Some(10.0));
        assert_eq!(percent(50.0, 100.0), Some(-50.0));
        assert_eq!(percent(1.0, 0.0), None);
    }
}
