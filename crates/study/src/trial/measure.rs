//! Figures of a program, and their differences between plain runs and runs of a variant.

use filemap_job::Spread;
use filemap_report::Unit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sample::{RunSample, spread, values};
use crate::verdict::{AMOUNT_WORDS, Margin, TIME_WORDS, TestResult};

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    BytesRead,
    MajorFaults,
    ElapsedNs,
    CpuNs,
}

impl Measure {
    /// Every one, in the order of tables.
    pub const ALL: [Measure; 4] =
        [Measure::BytesRead, Measure::MajorFaults, Measure::ElapsedNs, Measure::CpuNs];

    /// Its key in CSV.
    pub const fn key(self) -> &'static str {
        match self {
            Measure::BytesRead => "bytes_read",
            Measure::MajorFaults => "major_faults",
            Measure::ElapsedNs => "elapsed_ns",
            Measure::CpuNs => "cpu_ns",
        }
    }

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Measure::BytesRead => "read",
            Measure::MajorFaults => "major faults",
            Measure::ElapsedNs => "elapsed",
            Measure::CpuNs => "CPU time",
        }
    }

    /// Its unit.
    pub const fn unit(self) -> Unit {
        match self {
            Measure::BytesRead => Unit::Bytes,
            Measure::MajorFaults => Unit::Count,
            Measure::ElapsedNs | Measure::CpuNs => Unit::Nanoseconds,
        }
    }

    /// Its value in a run.
    pub const fn value(self) -> fn(&RunSample) -> u64 {
        match self {
            Measure::BytesRead => |run| run.bytes_read,
            Measure::MajorFaults => |run| run.major_faults,
            Measure::ElapsedNs => |run| run.elapsed_ns,
            Measure::CpuNs => |run| run.cpu_ns,
        }
    }

    /// The words for a lower and for a higher figure.
    const fn verdict_words(self) -> [&'static str; 2] {
        match self {
            Measure::BytesRead | Measure::CpuNs => AMOUNT_WORDS,
            Measure::MajorFaults => ["fewer", "more"],
            Measure::ElapsedNs => TIME_WORDS,
        }
    }
}

/// Tests whether a figure of `variant` differs from the one of `plain` by more than `margin` and
/// chance.
pub fn compare_samples<'a>(
    plain: impl IntoIterator<Item = &'a RunSample>,
    variant: impl IntoIterator<Item = &'a RunSample>,
    value: fn(&RunSample) -> u64,
    margin: Margin,
) -> TestResult {
    TestResult::unpaired(&values(plain, value), &values(variant, value), margin)
}

/// One measure of plain and governed runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasureComparison {
    pub measure: Measure,
    /// Over the plain runs.
    pub plain: Spread,
    /// Over the governed runs.
    pub governed: Spread,
    /// Median of plain runs divided by the median of governed runs; null if the latter is 0.
    pub ratio: Option<f64>,
    /// From the plain median to the governed one, in percent.
    pub change_percent: Option<f64>,
    /// p-value of the permutation test.
    pub p_value: f64,
    /// How governed runs compare, if the runs can tell.
    pub verdict: String,
    /// No published value exists.
    error: Option<f64>,
    /// No published value exists.
    ok: Option<bool>,
}

impl MeasureComparison {
    /// `measure` of plain and of governed runs.
    ///
    /// # Panics
    /// Without a run of each kind.
    pub fn new<'a>(
        measure: Measure,
        plain: impl Iterator<Item = &'a RunSample> + Clone,
        governed: impl Iterator<Item = &'a RunSample> + Clone,
    ) -> MeasureComparison {
        let value = measure.value();
        let (before, after) = (spread(plain.clone(), value), spread(governed.clone(), value));
        let tested = compare_samples(plain, governed, value, Margin::NONE);
        MeasureComparison {
            measure,
            plain: before,
            governed: after,
            ratio: (after.median > 0.0).then(|| before.median / after.median),
            change_percent: tested.change_percent(),
            p_value: tested.p_value,
            verdict: tested.verdict.describe(measure.verdict_words()).to_string(),
            error: None,
            ok: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_test_few_runs() {
        let runs = |times: &[u64]| -> Vec<RunSample> {
            let run = |&elapsed_ns: &u64| RunSample { elapsed_ns, ..RunSample::default() };
            times.iter().map(run).collect()
        };
        let cell = |plain: &[u64], governed: &[u64]| {
            MeasureComparison::new(Measure::ElapsedNs, runs(plain).iter(), runs(governed).iter())
        };
        assert_eq!(cell(&[9, 9, 9], &[1, 1, 1]).verdict, "not tested");
        assert_eq!(cell(&[9, 9, 9, 9, 9], &[1, 1, 1, 1, 1]).verdict, "faster");
        assert_eq!(cell(&[1, 1, 1, 1, 1], &[9, 9, 9, 9, 9]).verdict, "slower");
        let same = cell(&[0; 5], &[0; 5]);
        assert_eq!(
            (same.verdict.as_str(), same.ratio, same.change_percent),
            ("no difference shown", None, None)
        );
    }
}
