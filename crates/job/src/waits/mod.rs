//! What threads did and waited for, and for how long.

mod call;
mod cause;
mod histogram;

use serde::{Deserialize, Serialize};

pub use call::Call;
pub use cause::Cause;
pub use histogram::Histogram;

/// What threads did, called or waited for, in spans of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Wait {
    /// What they did or waited for, or the name of the call.
    pub cause: String,
    /// How many spans.
    pub count: u64,
    /// All of them together, in nanoseconds.
    pub sum_ns: u64,
    /// Half of them were no longer than this, in nanoseconds: to the end of a class.
    pub p50_ns: u64,
    /// 99 of 100 were no longer than this, in nanoseconds.
    pub p99_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
    /// The classes that hold any: the shortest span of each in nanoseconds, and how many it holds.
    /// The next class begins at twice that.
    pub classes: Vec<(u64, u64)>,
}

impl Wait {
    /// The `spans` of `cause`; `None` where there are none.
    pub fn of(cause: &str, spans: &Histogram) -> Option<Wait> {
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
