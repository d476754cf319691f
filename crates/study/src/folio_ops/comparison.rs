//! Each operation with every counting scheme, compared with the base.

use filemap_job::FolioOpsRun;
use filemap_job::folio_ops::{FolioOpsSample, Operation, PAGE_BYTES, PAGE_MAPCOUNT};
use serde::{Deserialize, Serialize};

pub use crate::measure::Measurement as Figure;
use crate::stats::percent;
use crate::verdict::{TestResult, Verdict};

/// Added costs of a fault, in nanoseconds: none, since the small mm has no faults, and the costs on
/// two real machines.
pub const FAULT_NS: [u64; 3] = [0, 360, 800];

/// An operation in folios of one size, with every scheme.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct OperationComparison {
    /// Size of each folio in bytes.
    pub folio_bytes: u64,
    /// The operation.
    pub operation: Operation,
    /// L: time of one locked read-modify-write, measured in the same repeats, in nanoseconds.
    pub locked_ns: Option<Figure>,
    /// Every scheme, the base first.
    pub configurations: Vec<SchemeFigures>,
}

/// The figures of one scheme.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SchemeFigures {
    /// Its name.
    pub counters: String,
    /// Time of a page, in nanoseconds.
    pub ns_per_page: Figure,
    /// Pages that write faults copied; `None` if repeats differ, or it was not counted.
    pub copied: Option<u64>,
    /// Pages that write faults reused.
    pub reused: Option<u64>,
    /// The change against the base; `None` for the base itself.
    pub change: Option<SchemeChange>,
}

/// The change in time of a scheme against the base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SchemeChange {
    /// Change in percent, within each repeat: a disturbance of the machine affects all schemes of a
    /// repeat.
    pub percent: Figure,
    /// Saving of a page in units of L.
    pub saved_locked: Option<Figure>,
    /// Additional time of a folio in units of L.
    pub extra_locked_per_folio: Option<Figure>,
    /// p-value of the signed-rank test on the changes within repeats.
    pub p_value: f64,
    /// Whether the difference is significant.
    pub differs: bool,
    /// For writes that reuse pages: nanoseconds added for each fault, and the change in percent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percent_with_faults: Vec<(u64, f64)>,
}

impl OperationComparison {
    /// Compares every operation of `runs`, in order.
    pub fn from_runs(runs: &[FolioOpsRun]) -> Vec<OperationComparison> {
        let mut all: Vec<OperationComparison> = Vec::new();
        for cell in runs.iter().flat_map(|run| &run.cells) {
            let is_same = |other: &OperationComparison| {
                (other.folio_bytes, other.operation) == (cell.folio_bytes, cell.operation)
            };
            if !all.iter().any(is_same) {
                all.push(OperationComparison::new(cell.folio_bytes, cell.operation, runs));
            }
        }
        all
    }

    fn new(folio_bytes: u64, operation: Operation, runs: &[FolioOpsRun]) -> OperationComparison {
        let samples = runs.iter().flat_map(|run| &run.cells);
        let samples = samples
            .filter(|sample| (sample.folio_bytes, sample.operation) == (folio_bytes, operation));
        let mut schemes: Vec<(&str, SchemeSamples)> = Vec::new();
        for sample in samples {
            match schemes.iter_mut().find(|(counters, _)| *counters == sample.counters) {
                Some((_, samples)) => samples.push(sample),
                None => schemes.push((&sample.counters, vec![sample])),
            }
        }
        let base = schemes.iter().find(|(counters, _)| *counters == PAGE_MAPCOUNT);
        let configurations = schemes.iter().filter_map(|(counters, samples)| {
            let base = base.filter(|(base, _)| base != counters);
            Some(SchemeFigures {
                counters: (*counters).to_string(),
                ns_per_page: Figure::from_samples(samples.iter().map(|sample| sample.ns_per_page))?,
                copied: count(samples, |sample| sample.copied),
                reused: count(samples, |sample| sample.reused),
                change: base.and_then(|(_, base)| SchemeChange::between(base, samples)),
            })
        });
        let first = schemes.first();
        let locked_ns =
            first.map(|(_, samples)| samples.iter().filter_map(|sample| sample.locked_ns));
        OperationComparison {
            folio_bytes,
            operation,
            locked_ns: locked_ns.and_then(Figure::from_samples),
            configurations: configurations.collect(),
        }
    }

    /// The figures of a scheme.
    pub fn scheme(&self, counters: &str) -> Option<&SchemeFigures> {
        self.configurations.iter().find(|scheme| scheme.counters == counters)
    }

    /// The change of a scheme against the base.
    pub(crate) fn change(&self, counters: &str) -> Option<&SchemeChange> {
        self.scheme(counters)?.change.as_ref()
    }
}

/// The samples of one scheme, one for each repeat.
type SchemeSamples<'a> = Vec<&'a FolioOpsSample>;

/// A count that is the same in every repeat.
fn count(samples: &SchemeSamples, field: fn(&FolioOpsSample) -> Option<u64>) -> Option<u64> {
    let first = field(samples.first()?);
    first.filter(|_| samples.iter().all(|sample| field(sample) == first))
}

impl SchemeChange {
    fn between(base: &SchemeSamples, own: &SchemeSamples) -> Option<SchemeChange> {
        let times = |samples: &SchemeSamples| {
            samples.iter().map(|sample| sample.ns_per_page).collect::<Vec<_>>()
        };
        let (before, after) = (times(base), times(own));
        let pairs = || before.iter().zip(&after);
        let percents = |added: f64| {
            Figure::from_samples(
                pairs().filter_map(|(base, own)| percent(own + added, base + added)),
            )
        };
        let saved = |pages: f64| {
            Figure::from_samples(pairs().zip(own).filter_map(|((base, time), sample)| {
                Some((base - time) * pages / sample.locked_ns.filter(|&ns| ns > 0.0)?)
            }))
        };
        let tested = TestResult::paired(&before, &after);
        let (operation, pages) = (own[0].operation, own[0].folio_bytes / PAGE_BYTES);
        let with_fault = |ns: u64| percents(ns as f64).map(|percent| (ns, percent.median));
        let faults = FAULT_NS.into_iter().filter(|_| operation.reuses());
        Some(SchemeChange {
            percent: percents(0.0)?,
            saved_locked: saved(1.0),
            extra_locked_per_folio: saved(-(pages as f64)),
            p_value: tested.p_value,
            differs: matches!(tested.verdict, Verdict::Less | Verdict::More),
            percent_with_faults: faults.filter_map(with_fault).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::folio_ops::MM_OWNER;

    use super::*;

    fn run(locked_ns: f64, base: f64, own: f64) -> FolioOpsRun {
        let cell = |counters: &str, ns_per_page, copied| FolioOpsSample {
            folio_bytes: 16 << 10,
            operation: Operation::ReuseByte,
            counters: counters.to_string(),
            ns_per_page,
            copied: Some(copied),
            reused: None,
            locked_ns: Some(locked_ns),
        };
        let cells = vec![cell(PAGE_MAPCOUNT, base, 8), cell(MM_OWNER, own, 0)];
        FolioOpsRun { locked_ns: Some(locked_ns), cells }
    }

    #[test]
    fn changes_are_medians_of_changes_within_repeats() {
        let runs = [run(5.0, 100.0, 80.0), run(4.0, 200.0, 90.0), run(6.0, 110.0, 99.0)];
        let all = OperationComparison::from_runs(&runs);
        assert_eq!(all.len(), 1);
        let own = all[0].scheme(MM_OWNER).unwrap();
        assert_eq!((own.ns_per_page.median, own.copied), (90.0, Some(0)));
        let change = own.change.as_ref().unwrap();
        let Figure { median, mad, min, max } = change.percent;
        for (own, expected) in [(median, -20.0), (mad, 10.0), (min, -55.0), (max, -10.0)] {
            assert!((own - expected).abs() < 1e-9, "{change:?}");
        }
        let saved = change.saved_locked.unwrap();
        assert_eq!((saved.median, saved.max), (4.0, 27.5));
        let extra = change.extra_locked_per_folio.unwrap();
        assert_eq!((extra.median, extra.min), (-16.0, -110.0));
        assert!(!change.differs, "three repeats show nothing: {change:?}");
        let with_faults = &change.percent_with_faults;
        assert_eq!(with_faults[0].0, 0);
        assert!((with_faults[1].1 - -2000.0 / 460.0).abs() < 1e-9, "{with_faults:?}");
        assert_eq!(all[0].scheme(PAGE_MAPCOUNT).unwrap().change, None);
    }

    /// The machine slows down between repeats by more than the schemes differ.
    #[test]
    fn a_change_in_every_repeat_is_significant() {
        let runs = |repeats: u32, change: fn(u32) -> f64| -> Vec<FolioOpsRun> {
            let base = |repeat: u32| 100.0 + 50.0 * f64::from(repeat);
            (0..repeats).map(|at| run(5.0, base(at), base(at) * change(at))).collect()
        };
        let change = |runs: &[FolioOpsRun]| {
            let all = OperationComparison::from_runs(runs);
            all[0].scheme(MM_OWNER).unwrap().change.clone().unwrap()
        };
        let always = change(&runs(9, |_| 0.95));
        assert!(always.differs && always.p_value == 2.0 / 512.0, "{always:?}");
        assert!(!change(&runs(5, |_| 0.95)).differs);
        let irregular = change(&runs(9, |at| if at % 2 == 0 { 0.95 } else { 1.06 }));
        assert!(!irregular.differs, "{irregular:?}");
    }

    #[test]
    fn savings_are_in_units_of_l_of_the_same_sample() {
        let mut runs = [run(5.0, 100.0, 80.0)];
        runs[0].locked_ns = Some(1.0);
        let saved = |runs: &[FolioOpsRun]| {
            let all = OperationComparison::from_runs(runs);
            let change = all[0].scheme(MM_OWNER).unwrap().change.clone().unwrap();
            (all[0].locked_ns.map(|ns| ns.median), change.saved_locked.map(|saved| saved.median))
        };
        assert_eq!(saved(&runs), (Some(5.0), Some(4.0)));
        runs[0].cells.iter_mut().for_each(|cell| cell.locked_ns = None);
        assert_eq!(saved(&runs), (None, None));
    }

    #[test]
    fn differing_counts_are_no_count() {
        let mut runs = [run(5.0, 100.0, 80.0), run(5.0, 100.0, 80.0)];
        runs[1].cells[0].copied = Some(7);
        let all = OperationComparison::from_runs(&runs);
        assert_eq!(all[0].scheme(PAGE_MAPCOUNT).unwrap().copied, None);
    }
}
