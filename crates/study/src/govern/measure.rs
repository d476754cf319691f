//! What is measured of a program, and how it differs between plain and governed runs.

use filemap_job::Spread;
use filemap_report::Unit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::measured::Measured;
use crate::verdict::{Margin, OF_AMOUNT, OF_TIME, Tested, samples};

/// Something that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    BytesRead,
    MajorFaults,
    ElapsedNs,
    CpuNs,
}

impl Measure {
    pub const ALL: [Measure; 4] =
        [Measure::BytesRead, Measure::MajorFaults, Measure::ElapsedNs, Measure::CpuNs];

    /// Its key, what it is called, its unit, what a governed run is that has less of it or more,
    /// and its value in a run.
    const fn told(self) -> Told {
        match self {
            Measure::BytesRead => {
                ("bytes_read", "read", Unit::Bytes, OF_AMOUNT, |run| run.bytes_read)
            }
            Measure::MajorFaults => {
                ("major_faults", "major faults", Unit::Count, ["fewer", "more"], |run| {
                    run.ran.major_faults
                })
            }
            Measure::ElapsedNs => {
                ("elapsed_ns", "elapsed", Unit::Nanoseconds, OF_TIME, |run| run.ran.elapsed_ns)
            }
            Measure::CpuNs => {
                ("cpu_ns", "CPU time", Unit::Nanoseconds, OF_AMOUNT, |run| run.ran.cpu_ns)
            }
        }
    }

    pub const fn key(self) -> &'static str {
        self.told().0
    }

    pub const fn name(self) -> &'static str {
        self.told().1
    }

    pub const fn unit(self) -> Unit {
        self.told().2
    }
}

type Told = (&'static str, &'static str, Unit, [&'static str; 2], fn(&Measured) -> u64);

/// One measure of plain and governed runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    pub measure: Measure,
    /// Over the plain runs.
    pub plain: Spread,
    /// Over the governed runs.
    pub governed: Spread,
    /// The median of plain runs over that of governed ones; null where that is 0.
    pub ratio: Option<f64>,
    /// From the plain median to the governed one, in percent.
    pub change_percent: Option<f64>,
    /// How often chance alone sets the runs apart as much.
    pub p_value: f64,
    /// What governed runs are, where the runs can tell.
    pub verdict: String,
    /// Nothing is published of it.
    error: Option<f64>,
    /// Nothing is published of it.
    ok: Option<bool>,
}

impl Cell {
    /// `measure` of plain and of governed runs.
    ///
    /// # Panics
    /// Where there is none of one kind.
    pub fn of<'a>(
        measure: Measure,
        plain: impl Iterator<Item = &'a Measured>,
        governed: impl Iterator<Item = &'a Measured>,
    ) -> Cell {
        let (.., words, value) = measure.told();
        let plain: Vec<u64> = plain.map(value).collect();
        let governed: Vec<u64> = governed.map(value).collect();
        let spread = |samples: &[u64]| Spread::of(samples.iter().copied()).expect("it was run");
        let (before, after) = (spread(&plain), spread(&governed));
        let tested = Tested::unpaired(&samples(plain), &samples(governed), Margin::NONE);
        Cell {
            measure,
            plain: before,
            governed: after,
            ratio: (after.median > 0.0).then(|| before.median / after.median),
            change_percent: tested.change_percent(),
            p_value: tested.p_value,
            verdict: tested.verdict.said(words).to_string(),
            error: None,
            ok: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Ran;

    #[test]
    fn few_runs_are_not_tested() {
        let runs = |times: &[u64]| -> Vec<Measured> {
            let ran = |&elapsed_ns: &u64| Ran { elapsed_ns, ..Ran::default() };
            times.iter().map(|time| Measured { ran: ran(time), ..Measured::default() }).collect()
        };
        let of = |plain: &[u64], governed: &[u64]| {
            Cell::of(Measure::ElapsedNs, runs(plain).iter(), runs(governed).iter())
        };
        assert_eq!(of(&[9, 9, 9], &[1, 1, 1]).verdict, "not tested");
        assert_eq!(of(&[9, 9, 9, 9, 9], &[1, 1, 1, 1, 1]).verdict, "faster");
        assert_eq!(of(&[1, 1, 1, 1, 1], &[9, 9, 9, 9, 9]).verdict, "slower");
        let same = of(&[0; 5], &[0; 5]);
        assert_eq!(
            (same.verdict.as_str(), same.ratio, same.change_percent),
            ("no difference shown", None, None)
        );
    }
}
