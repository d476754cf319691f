//! What is measured of a program, and how it differs between plain and governed runs.

use filemap_job::Spread;
use serde::Serialize;

use super::compare::Measured;
use crate::verdict::{Margin, OF_AMOUNT, OF_TIME, Tested, samples};
use filemap_report::units::{bytes, number, time};

/// Something that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Its name in a table, and in JSON.
    name: &'static str,
    key: &'static str,
    /// What a governed run is that has less of it, and what one is that has more.
    words: [&'static str; 2],
    pub value: fn(&Measured) -> u64,
    text: fn(f64) -> String,
}

impl Measure {
    /// Everything that is measured.
    pub const ALL: [Measure; 4] = [
        Measure {
            name: "read",
            key: "bytes_read",
            words: OF_AMOUNT,
            value: |run| run.bytes_read,
            text: bytes,
        },
        Measure {
            name: "major faults",
            key: "major_faults",
            words: ["fewer", "more"],
            value: |run| run.major_faults,
            text: number,
        },
        Measure {
            name: "elapsed",
            key: "elapsed_ns",
            words: OF_TIME,
            value: |run| run.elapsed_ns,
            text: time,
        },
        Measure {
            name: "CPU time",
            key: "cpu_ns",
            words: OF_AMOUNT,
            value: |run| run.cpu_ns,
            text: time,
        },
    ];
}

/// One measure of plain and governed runs.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Cell {
    /// Its name in a table.
    #[serde(skip)]
    pub measure: &'static str,
    /// What is measured: `bytes_read`, `major_faults`, `elapsed_ns` or `cpu_ns`.
    #[serde(rename = "measure")]
    pub key: &'static str,
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
    pub verdict: &'static str,
    /// Nothing is published of it.
    pub error: Option<f64>,
    /// Nothing is published of it.
    pub ok: Option<bool>,
    #[serde(skip)]
    pub text: fn(f64) -> String,
}

impl Cell {
    /// `measure` of plain and of governed runs.
    ///
    /// # Panics
    /// Where there is none of one kind.
    pub fn of(measure: Measure, plain: Vec<u64>, governed: Vec<u64>) -> Cell {
        let spread = |samples: &[u64]| Spread::of(samples.iter().copied()).expect("it was run");
        let (before, after) = (spread(&plain), spread(&governed));
        let tested = Tested::unpaired(&samples(plain), &samples(governed), Margin::NONE);
        Cell {
            measure: measure.name,
            key: measure.key,
            plain: before,
            governed: after,
            ratio: (after.median > 0.0).then(|| before.median / after.median),
            change_percent: tested.change_percent(),
            p_value: tested.p_value,
            verdict: tested.verdict.said(measure.words),
            error: None,
            ok: None,
            text: measure.text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_runs_are_not_tested() {
        let of = |plain: &[u64], governed: &[u64]| {
            Cell::of(Measure::ALL[2], plain.to_vec(), governed.to_vec())
        };
        assert_eq!(of(&[9, 9, 9], &[1, 1, 1]).verdict, "not tested");
        assert_eq!(of(&[9, 9, 9, 9, 9], &[1, 1, 1, 1, 1]).verdict, "faster");
        assert_eq!(of(&[1, 1, 1, 1, 1], &[9, 9, 9, 9, 9]).verdict, "slower");
        let same = of(&[0; 5], &[0; 5]);
        assert_eq!(
            (same.verdict, same.ratio, same.change_percent),
            ("no difference shown", None, None)
        );
    }
}
