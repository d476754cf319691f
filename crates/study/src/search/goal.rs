//! Goals of a search.

use std::str::FromStr;

use filemap_job::Run;
use serde::{Deserialize, Serialize};

use filemap_report::Unit;

/// The figure that a search compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Bytes of the file that enter the page cache.
    Bytes,
    /// Major faults.
    Majors,
    /// Predicted time.
    Elapsed,
}

impl Metric {
    const ALL: [Metric; 3] = [Metric::Bytes, Metric::Majors, Metric::Elapsed];

    /// Name in flags and reports, wording in headings, and unit.
    const fn description(self) -> (&'static str, &'static str, Unit) {
        match self {
            Metric::Bytes => ("bytes", "bytes read", Unit::Bytes),
            Metric::Majors => ("majors", "major faults", Unit::Count),
            Metric::Elapsed => ("elapsed", "time that the model predicts", Unit::Nanoseconds),
        }
    }

    const fn name(self) -> &'static str {
        self.description().0
    }

    /// Wording in headings.
    pub(super) const fn words(self) -> &'static str {
        self.description().1
    }

    /// Formats the value of `cost`.
    pub(super) fn format_cost(self, cost: &RunCost) -> String {
        self.description().2.text(cost.figure(self) as f64)
    }
}

impl FromStr for Metric {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Metric::ALL.into_iter().find(|metric| metric.name() == text);
        let names = Metric::ALL.map(Metric::name).join(", ");
        known.ok_or(format!("give one of {names}"))
    }
}

/// The goal of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub enum Goal {
    /// Jobs that the second variant makes worse.
    Worse(Metric),
    /// Jobs that it improves most.
    Over(Metric),
    /// Any difference.
    Differ,
}

impl Goal {
    /// The figure by which jobs are ordered.
    pub const fn metric(self) -> Metric {
        match self {
            Goal::Worse(metric) | Goal::Over(metric) => metric,
            Goal::Differ => Metric::Bytes,
        }
    }

    /// How far the goal is met: ratio (0 counts as 1) and difference; `None` if it is not met.
    pub fn gain(self, first: &RunCost, second: &RunCost) -> Option<(f64, u64)> {
        let [one, two] = [first, second].map(|cost| cost.figure(self.metric()));
        let (low, high) = match self {
            Goal::Worse(_) => (one, two),
            Goal::Over(_) => (two, one),
            Goal::Differ => (one.min(two), one.max(two)),
        };
        let is_met = high > low || self == Goal::Differ;
        is_met.then(|| (high.max(1) as f64 / low.max(1) as f64, high - low))
    }
}

/// The spelling of the command line.
impl From<Goal> for String {
    fn from(goal: Goal) -> String {
        match goal {
            Goal::Worse(metric) => format!("--worse {}", metric.name()),
            Goal::Over(metric) => format!("--over {}", metric.name()),
            Goal::Differ => "--differ".to_string(),
        }
    }
}

impl TryFrom<String> for Goal {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Ok(match text.split_once(' ') {
            None if text == "--differ" => Goal::Differ,
            Some(("--worse", metric)) => Goal::Worse(metric.parse()?),
            Some(("--over", metric)) => Goal::Over(metric.parse()?),
            _ => return Err(format!("'{text}' is no goal of a search")),
        })
    }
}

/// Cost of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunCost {
    /// Bytes of the file that enter the page cache.
    pub bytes_read: u64,
    /// Major faults.
    pub major_faults: u64,
    /// Predicted time in nanoseconds.
    pub elapsed_ns: u64,
}

impl RunCost {
    /// Cost of `run`.
    pub fn from_run(run: &Run) -> RunCost {
        RunCost {
            bytes_read: run.counters.bytes_read.unwrap_or(0),
            major_faults: run.counters.major_faults.unwrap_or(0),
            elapsed_ns: run.elapsed_ns.unwrap_or(0),
        }
    }

    /// The figure of `metric`.
    const fn figure(&self, metric: Metric) -> u64 {
        match metric {
            Metric::Bytes => self.bytes_read,
            Metric::Majors => self.major_faults,
            Metric::Elapsed => self.elapsed_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goal_matches_its_condition() {
        let cost = |major_faults| RunCost { major_faults, ..RunCost::default() };
        let (one, many) = (cost(1), cost(4096));
        let gain = |goal: Goal| goal.gain(&one, &many);
        assert_eq!(gain(Goal::Worse(Metric::Majors)), Some((4096.0, 4095)));
        assert_eq!(gain(Goal::Over(Metric::Majors)), None);
        assert_eq!(gain(Goal::Worse(Metric::Bytes)), None);
        assert_eq!(gain(Goal::Differ), Some((1.0, 0)));
        let gain = Goal::Over(Metric::Majors).gain(&many, &cost(0));
        assert_eq!(gain, Some((4096.0, 4096)), "nothing counts as one");
    }
}
