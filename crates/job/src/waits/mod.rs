//! Durations of what threads did and waited for.

mod call;
mod cause;
mod histogram;
mod latency;

use serde::{Deserialize, Serialize};

pub use call::Call;
pub use cause::Cause;
pub use histogram::Histogram;
pub use latency::{Latency, LatencyHistogram};

/// Durations of one cause or call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Wait {
    /// Name of the cause or call.
    pub cause: String,
    /// Number of durations.
    pub count: u64,
    /// Sum of the durations, in nanoseconds.
    pub sum_ns: u64,
    /// Median in nanoseconds, rounded up to the end of its bucket.
    pub p50_ns: u64,
    /// 99th percentile in nanoseconds, rounded up to the end of its bucket.
    pub p99_ns: u64,
    /// Longest duration, in nanoseconds.
    pub max_ns: u64,
    /// Non-empty buckets: lower bound in nanoseconds and count of each. The upper bound is twice
    /// the lower bound.
    pub classes: Vec<(u64, u64)>,
}

impl Wait {
    /// The durations of `cause`; `None` if there are none.
    pub fn from_histogram(cause: &str, spans: &Histogram) -> Option<Wait> {
        (spans.count > 0).then(|| Wait {
            cause: cause.to_string(),
            count: spans.count,
            sum_ns: spans.sum_ns,
            p50_ns: spans.percentile_ns(50),
            p99_ns: spans.percentile_ns(99),
            max_ns: spans.max_ns,
            classes: spans.classes().collect(),
        })
    }
}
