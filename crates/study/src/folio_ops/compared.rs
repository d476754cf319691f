//! Each operation with every way to count, held against the base.

use filemap_job::FolioOpsRun;
use filemap_job::folio_ops::{FolioCell, Operation, PAGE_BYTES, PAGE_MAPCOUNT};
use serde::{Deserialize, Serialize};

pub use crate::measure::Measure as Figure;
use crate::stats::percent;
use crate::verdict::{Tested, Verdict};

/// Costs of a fault in nanoseconds with which reuse is compared: none, as nothing faults in the
/// small mm, and two of real machines.
pub const FAULT_NS: [u64; 3] = [0, 360, 800];

/// One operation in folios of one size.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Compared {
    /// Size of each folio in bytes.
    pub folio_bytes: u64,
    /// What was done.
    pub operation: Operation,
    /// L: time of one locked read-modify-write, measured beside it in each repeat, in nanoseconds.
    pub locked_ns: Option<Figure>,
    /// Every way to count, the base first.
    pub configurations: Vec<Configuration>,
}

/// What one way to count came to.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Configuration {
    /// Its name.
    pub counters: String,
    /// Time of a page, in nanoseconds.
    pub ns_per_page: Figure,
    /// Pages that write faults copied; `None` where repeats differ, or nobody counts.
    pub copied: Option<u64>,
    /// Pages that they reused.
    pub reused: Option<u64>,
    /// What is different from the base; `None` of the base itself.
    pub change: Option<Change>,
}

/// How the time of one way to count differs from that of the base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Change {
    /// Change of the time in percent, of each repeat: what slows the machine down for a while slows
    /// all of a repeat down.
    pub percent: Figure,
    /// What it saves of a page, in units of L.
    pub saved_locked: Option<Figure>,
    /// What it takes more for each folio, in units of L.
    pub extra_locked_per_folio: Option<Figure>,
    /// How often chance alone sets the two apart as much (signed-rank test on the changes of the
    /// repeats).
    pub p_value: f64,
    /// Whether that is rare enough to call it a difference.
    pub differs: bool,
    /// Where writes reuse pages: nanoseconds added for each fault, and the change in percent then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percent_with_faults: Vec<(u64, f64)>,
}

impl Compared {
    /// Every operation of `runs`, in their order.
    pub fn all(runs: &[FolioOpsRun]) -> Vec<Compared> {
        let mut all: Vec<Compared> = Vec::new();
        for cell in runs.iter().flat_map(|run| &run.cells) {
            let is_same = |of: &Compared| {
                (of.folio_bytes, of.operation) == (cell.folio_bytes, cell.operation)
            };
            if !all.iter().any(is_same) {
                all.push(Compared::of(cell.folio_bytes, cell.operation, runs));
            }
        }
        all
    }

    fn of(folio_bytes: u64, operation: Operation, runs: &[FolioOpsRun]) -> Compared {
        let own = runs.iter().flat_map(|run| &run.cells);
        let own = own.filter(|of| (of.folio_bytes, of.operation) == (folio_bytes, operation));
        let mut ways: Vec<(&str, Way)> = Vec::new();
        for cell in own {
            match ways.iter_mut().find(|(counters, _)| *counters == cell.counters) {
                Some((_, way)) => way.push(cell),
                None => ways.push((&cell.counters, vec![cell])),
            }
        }
        let base = ways.iter().find(|(counters, _)| *counters == PAGE_MAPCOUNT);
        let configurations = ways.iter().filter_map(|(counters, way)| {
            let base = base.filter(|(base, _)| base != counters);
            Some(Configuration {
                counters: (*counters).to_string(),
                ns_per_page: Figure::of(way.iter().map(|cell| cell.ns_per_page))?,
                copied: count(way, |cell| cell.copied),
                reused: count(way, |cell| cell.reused),
                change: base.and_then(|(_, base)| Change::of(base, way)),
            })
        });
        let locked_ns = ways.first().map(|(_, way)| way.iter().filter_map(|cell| cell.locked_ns));
        Compared {
            folio_bytes,
            operation,
            locked_ns: locked_ns.and_then(Figure::of),
            configurations: configurations.collect(),
        }
    }

    /// What the way to count of that name came to.
    pub fn configuration(&self, counters: &str) -> Option<&Configuration> {
        self.configurations.iter().find(|own| own.counters == counters)
    }

    /// How that differs from the base.
    pub(crate) fn change(&self, counters: &str) -> Option<&Change> {
        self.configuration(counters)?.change.as_ref()
    }
}

/// The cells of one way to count, one for each repeat.
type Way<'a> = Vec<&'a FolioCell>;

/// What every repeat of `way` counted.
fn count(way: &Way, of: fn(&FolioCell) -> Option<u64>) -> Option<u64> {
    let first = of(way.first()?);
    first.filter(|_| way.iter().all(|cell| of(cell) == first))
}

impl Change {
    /// From `base` to `own`.
    fn of(base: &Way, own: &Way) -> Option<Change> {
        let times = |way: &Way| way.iter().map(|cell| cell.ns_per_page).collect::<Vec<_>>();
        let (before, after) = (times(base), times(own));
        let pairs = || before.iter().zip(&after);
        let percents = |added: f64| {
            Figure::of(pairs().filter_map(|(base, own)| percent(own + added, base + added)))
        };
        let saved = |pages: f64| {
            Figure::of(pairs().zip(own).filter_map(|((base, time), cell)| {
                Some((base - time) * pages / cell.locked_ns.filter(|&ns| ns > 0.0)?)
            }))
        };
        let tested = Tested::paired(&before, &after);
        let (operation, pages) = (own[0].operation, own[0].folio_bytes / PAGE_BYTES);
        let with_fault = |ns: u64| percents(ns as f64).map(|percent| (ns, percent.median));
        let faults = FAULT_NS.into_iter().filter(|_| operation.reuses());
        Some(Change {
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
        let cell = |counters: &str, ns_per_page, copied| FolioCell {
            folio_bytes: 16 << 10,
            operation: Operation::ReuseByte,
            counters: counters.to_string(),
            ns_per_page,
            copied: Some(copied),
            reused: None,
            locked_ns: Some(locked_ns),
        };
        let cells = vec![cell(PAGE_MAPCOUNT, base, 8), cell(MM_OWNER, own, 0)];
        FolioOpsRun { locked_ns: Some(locked_ns), cells, ..FolioOpsRun::default() }
    }

    #[test]
    fn changes_are_medians_of_those_of_each_repeat() {
        let runs = [run(5.0, 100.0, 80.0), run(4.0, 200.0, 90.0), run(6.0, 110.0, 99.0)];
        let all = Compared::all(&runs);
        assert_eq!(all.len(), 1);
        let own = all[0].configuration(MM_OWNER).unwrap();
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
        assert_eq!(all[0].configuration(PAGE_MAPCOUNT).unwrap().change, None);
    }

    /// The machine gets slower from repeat to repeat by more than the two differ in any.
    #[test]
    fn a_change_in_every_repeat_is_a_difference() {
        let runs = |repeats: u32, change: fn(u32) -> f64| -> Vec<FolioOpsRun> {
            let base = |repeat: u32| 100.0 + 50.0 * f64::from(repeat);
            (0..repeats).map(|at| run(5.0, base(at), base(at) * change(at))).collect()
        };
        let change = |runs: &[FolioOpsRun]| {
            let all = Compared::all(runs);
            all[0].configuration(MM_OWNER).unwrap().change.clone().unwrap()
        };
        let always = change(&runs(9, |_| 0.95));
        assert!(always.differs && always.p_value == 2.0 / 512.0, "{always:?}");
        assert!(!change(&runs(5, |_| 0.95)).differs);
        let now_and_then = change(&runs(9, |at| if at % 2 == 0 { 0.95 } else { 1.06 }));
        assert!(!now_and_then.differs, "{now_and_then:?}");
    }

    #[test]
    fn a_saving_is_in_units_of_what_was_measured_beside_it() {
        let mut runs = [run(5.0, 100.0, 80.0)];
        runs[0].locked_ns = Some(1.0);
        let saved = |runs: &[FolioOpsRun]| {
            let all = Compared::all(runs);
            let change = all[0].configuration(MM_OWNER).unwrap().change.clone().unwrap();
            (all[0].locked_ns.map(|ns| ns.median), change.saved_locked.map(|saved| saved.median))
        };
        assert_eq!(saved(&runs), (Some(5.0), Some(4.0)));
        runs[0].cells.iter_mut().for_each(|cell| cell.locked_ns = None);
        assert_eq!(saved(&runs), (None, None));
    }

    #[test]
    fn what_repeats_count_differently_is_no_count() {
        let mut runs = [run(5.0, 100.0, 80.0), run(5.0, 100.0, 80.0)];
        runs[1].cells[0].copied = Some(7);
        let all = Compared::all(&runs);
        assert_eq!(all[0].configuration(PAGE_MAPCOUNT).unwrap().copied, None);
    }
}
