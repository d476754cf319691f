//! The spread of a counter over several runs.

use serde::{Deserialize, Serialize, Serializer};

/// The spread of one counter over several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Spread {
    /// Median; for an even number of runs the mean of the middle two.
    #[serde(serialize_with = "serialize_shortest")]
    pub median: f64,
    /// Median absolute deviation from the median.
    #[serde(serialize_with = "serialize_shortest")]
    pub mad: f64,
    /// Minimum.
    pub min: u64,
    /// Maximum.
    pub max: u64,
}

impl Spread {
    /// The spread of `samples`; `None` if empty.
    pub fn from_samples(samples: impl IntoIterator<Item = u64>) -> Option<Spread> {
        let mut samples: Vec<u64> = samples.into_iter().collect();
        samples.sort_unstable();
        let (&min, &max) = (samples.first()?, samples.last()?);
        let median = middle(&samples, |sample| sample as f64);
        let mut deviations: Vec<f64> =
            samples.iter().map(|&sample| (sample as f64 - median).abs()).collect();
        deviations.sort_unstable_by(f64::total_cmp);
        Some(Spread { median, mad: middle(&deviations, |deviation| deviation), min, max })
    }
}

/// The median of a sorted, non-empty list.
fn middle<T: Copy>(sorted: &[T], value: impl Fn(T) -> f64) -> f64 {
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    (value(low) + value(high)) / 2.0
}

/// Serializes whole numbers without a decimal point, like the counters themselves.
fn serialize_shortest<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = (1u64 << 53) as f64;
    if value.fract() == 0.0 && (0.0..EXACT).contains(value) {
        serializer.serialize_u64(*value as u64)
    } else {
        serializer.serialize_f64(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(samples: &[u64]) -> (f64, f64, u64, u64) {
        let spread = Spread::from_samples(samples.iter().copied()).unwrap();
        (spread.median, spread.mad, spread.min, spread.max)
    }

    #[test]
    fn spreads() {
        assert_eq!(Spread::from_samples([]), None);
        assert_eq!(spread(&[7]), (7.0, 0.0, 7, 7));
        assert_eq!(spread(&[9, 1, 2]), (2.0, 1.0, 1, 9));
        assert_eq!(spread(&[4, 1]), (2.5, 1.5, 1, 4));
        assert_eq!(spread(&[1, 1, 2, 2, 4, 6, 9]), (2.0, 1.0, 1, 9));
    }

    #[test]
    fn whole_medians_have_no_point() {
        let text = serde_json::to_string(&Spread::from_samples([3, 5])).unwrap();
        assert_eq!(text, r#"{"median":4,"mad":1,"min":3,"max":5}"#);
        assert_eq!(
            serde_json::from_str::<Option<Spread>>(&text).unwrap(),
            Spread::from_samples([3, 5])
        );
    }
}
