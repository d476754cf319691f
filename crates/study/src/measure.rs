//! A figure over the runs of a record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::serialize_shortest;
use crate::verdict::median_or_zero;

/// A figure over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Median.
    #[serde(serialize_with = "serialize_shortest")]
    pub median: f64,
    /// Median of the absolute deviations from the median.
    #[serde(serialize_with = "serialize_shortest")]
    pub mad: f64,
    /// Smallest.
    #[serde(serialize_with = "serialize_shortest")]
    pub min: f64,
    /// Largest.
    #[serde(serialize_with = "serialize_shortest")]
    pub max: f64,
}

impl Measurement {
    /// Statistics of `samples`; `None` if empty.
    pub fn from_samples(samples: impl IntoIterator<Item = f64>) -> Option<Measurement> {
        let samples: Vec<f64> = samples.into_iter().collect();
        let min = samples.iter().copied().reduce(f64::min)?;
        let max = samples.iter().copied().reduce(f64::max)?;
        let median = median_or_zero(&samples);
        let deviations: Vec<f64> = samples.iter().map(|one| (one - median).abs()).collect();
        Some(Measurement { median, mad: median_or_zero(&deviations), min, max })
    }
}
