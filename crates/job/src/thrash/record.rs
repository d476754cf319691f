//! What a run of the workload `thrash` says beside its counters.

use serde::{Deserialize, Serialize};

use super::{Histogram, Tries, WaitCourse};
use crate::record::Counters;

/// How a run of the workload `thrash` ended, its rates, and where its threads waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThrashRun {
    /// How it ended.
    pub ended: Ended,
    /// Why it ended before it was to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// It ended before its warm-up was over: nothing was measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_warm_up: bool,
    /// x of reports: what the windows of all threads take, as a share of what the cgroup holds
    /// below `memory.high`, or `memory.max` where that is the only limit.
    #[serde(default)]
    pub pressure: Option<f64>,
    /// Rounds of all threads in a second.
    pub rounds_per_second: Option<f64>,
    /// `retry_mmap_drop` for each round.
    pub drops_per_round: Option<f64>,
    /// `retry_io_miss` for each `retry_mmap_drop`.
    pub misses_per_drop: Option<f64>,
    /// How often a fault that fault-around did not serve began.
    pub tries_per_fault: Option<f64>,
    /// For how long waits and tries were traced, in nanoseconds, where that is not all of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced_ns: Option<u64>,
    /// Where the time of the threads went that read, by cause; those of which none is known are
    /// left out.
    pub waits: Vec<Wait>,
    /// The same in the course of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<WaitCourse>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// As it was asked for.
    #[default]
    Complete,
    /// Nothing could be reclaimed, as all that was cached was locked.
    NoProgress,
    /// Nothing was left to reclaim.
    OutOfMemory,
}

/// What threads did or waited for, in spans of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wait {
    /// What for.
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

impl ThrashRun {
    /// What follows from the `counters` of a run that took `elapsed_ns` for them.
    pub fn of(counters: &Counters, elapsed_ns: Option<u64>) -> ThrashRun {
        let rate = |part: Option<u64>, of: Option<u64>| {
            let (part, of) = (part?, of.filter(|&of| of > 0)?);
            Some(part as f64 / of as f64)
        };
        let Counters { rounds, retry_mmap_drop, retry_io_miss, .. } = *counters;
        ThrashRun {
            rounds_per_second: rate(rounds, elapsed_ns).map(|rate| rate * 1e9),
            drops_per_round: rate(retry_mmap_drop, rounds),
            misses_per_drop: rate(retry_io_miss, retry_mmap_drop),
            ..ThrashRun::default()
        }
    }

    /// This with how it ended. Where nothing could go on, retries that did not come are no share of
    /// anything.
    pub fn ended(self, ended: Ended, reason: Option<String>) -> ThrashRun {
        let misses_per_drop = self.misses_per_drop.filter(|_| ended != Ended::NoProgress);
        ThrashRun { ended, reason, misses_per_drop, ..self }
    }

    /// A run that ended so before its warm-up was over.
    pub fn unmeasured(ended: Ended, reason: Option<String>) -> ThrashRun {
        let complete = "all rounds were complete; give more --rounds, or a shorter --warm-up";
        let reason = reason.or_else(|| Some(complete.to_string()));
        ThrashRun { ended, reason, in_warm_up: true, ..ThrashRun::default() }
    }

    /// This with `tries`.
    pub fn with_tries(self, tries: &Tries) -> ThrashRun {
        ThrashRun { tries_per_fault: tries.per_fault(), ..self }
    }
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

    /// The spans of `waits` together, by cause, in the order in which causes come first.
    pub fn merged<'a>(waits: impl IntoIterator<Item = &'a Wait>) -> Vec<Wait> {
        let mut merged: Vec<(&str, Histogram)> = Vec::new();
        for wait in waits {
            let at = merged.iter().position(|(cause, _)| *cause == wait.cause);
            let at = at.unwrap_or_else(|| {
                merged.push((&wait.cause, Histogram::default()));
                merged.len() - 1
            });
            merged[at].1.merge(&wait.classes, wait.sum_ns, wait.max_ns);
        }
        merged.iter().filter_map(|(cause, spans)| Wait::of(cause, spans)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_that_are_known() {
        let counters = Counters {
            rounds: Some(4),
            retry_mmap_drop: Some(8),
            retry_io_miss: Some(2),
            ..Counters::default()
        };
        let run = ThrashRun::of(&counters, Some(2_000_000_000));
        let rates = (run.rounds_per_second, run.drops_per_round, run.misses_per_drop);
        assert_eq!(rates, (Some(2.0), Some(2.0), Some(0.25)));
        let nothing = Counters { rounds: Some(0), retry_mmap_drop: Some(0), ..counters };
        let run = ThrashRun::of(&nothing, None);
        let rates = (run.rounds_per_second, run.drops_per_round, run.misses_per_drop);
        assert_eq!(rates, (None, None, None));
        assert_eq!(Wait::of("device", &Histogram::default()), None);
    }
}
