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
        let is_own =
            |cell: &&FolioCell| (cell.folio_bytes, cell.operation) == (folio_bytes, operation);
        let mut ways: Vec<Way> = Vec::new();
        for run in runs {
            for cell in run.cells.iter().filter(is_own) {
                let at = ways.iter().position(|way| way.counters == cell.counters);
                let at = at.unwrap_or_else(|| {
                    ways.push(Way { counters: &cell.counters, cells: Vec::new() });
                    ways.len() - 1
                });
                ways[at].cells.push(cell);
            }
        }
        let base = ways.iter().find(|way| way.counters == PAGE_MAPCOUNT);
        let pages = (folio_bytes / PAGE_BYTES) as f64;
        let configurations = ways.iter().filter_map(|way| {
            let base = base.filter(|base| base.counters != way.counters);
            Some(Configuration {
                counters: way.counters.to_string(),
                ns_per_page: Figure::of(way.times())?,
                copied: way.count(|cell| cell.copied),
                reused: way.count(|cell| cell.reused),
                change: base.and_then(|base| way.change(base, pages, operation)),
            })
        });
        Compared {
            folio_bytes,
            operation,
            locked_ns: ways.first().and_then(|way| Figure::of(way.locked_ns().flatten())),
            configurations: configurations.collect(),
        }
    }

    /// Those of `all` that are of `operation`.
    pub(crate) fn of_operation(operation: Operation, all: &[Compared]) -> Vec<&Compared> {
        all.iter().filter(|of| of.operation == operation).collect()
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
struct Way<'a> {
    counters: &'a str,
    cells: Vec<&'a FolioCell>,
}

impl Way<'_> {
    fn times(&self) -> impl Iterator<Item = f64> {
        self.cells.iter().map(|cell| cell.ns_per_page)
    }

    /// L beside each of them.
    fn locked_ns(&self) -> impl Iterator<Item = Option<f64>> {
        self.cells.iter().map(|cell| cell.locked_ns)
    }

    /// What every repeat counted.
    fn count(&self, of: fn(&FolioCell) -> Option<u64>) -> Option<u64> {
        let first = of(self.cells.first()?);
        first.filter(|_| self.cells.iter().all(|cell| of(cell) == first))
    }

    fn change(&self, base: &Way, pages: f64, operation: Operation) -> Option<Change> {
        let pairs = || self.times().zip(base.times());
        let changes = |added: f64| {
            let both = pairs().map(move |(own, base)| (own + added, base + added));
            both.filter_map(|(own, base)| percent(own, base))
        };
        let percents = |added: f64| Figure::of(changes(added));
        let saved = |sign: f64| {
            Figure::of(pairs().zip(self.locked_ns()).filter_map(|((own, base), locked_ns)| {
                Some((base - own) * sign / locked_ns.filter(|&ns| ns > 0.0)?)
            }))
        };
        let [before, after] = [base, self].map(|way| way.times().collect::<Vec<_>>());
        let tested = Tested::paired(&before, &after);
        let with_fault = |ns: u64| percents(ns as f64).map(|percent| (ns, percent.median));
        Some(Change {
            percent: percents(0.0)?,
            saved_locked: saved(1.0),
            extra_locked_per_folio: saved(-pages),
            p_value: tested.p_value,
            differs: matches!(tested.verdict, Verdict::Less | Verdict::More),
            percent_with_faults: match operation.reuses() {
                true => FAULT_NS.into_iter().filter_map(with_fault).collect(),
                false => Vec::new(),
            },
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
