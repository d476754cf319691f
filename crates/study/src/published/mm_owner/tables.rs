//! The tables of the series, and what is said of them.

use filemap_job::folio_ops::{
    MM_OWNER, NO_PAGE_MAPCOUNT, Operation, PAGE_BYTES, PAGE_MAPCOUNT, PLAIN_COUNTS, PRECISE_OWNERS,
};
use filemap_job::{FolioOpsRun, folio_ops::Contended};
use filemap_report::units::bytes;
use filemap_report::{Column, Part, Table, Value, csv, digits, figures, raw, table, words};

use super::cells::{BENCHMARK, COPIED, ONE_FOLIO, PERCENT, SAVED};
use super::{Form, NAME, counting};
use crate::folio_ops::{self, Compared, Configuration, Figure, OF_A_FOLIO};
use crate::published::cell::Cell;
use crate::published::data::PUBLISHED;
use crate::stats::MAD;

fn note(name: &str, values: &[(&str, String)]) -> String {
    PUBLISHED.mm_owner.about.note(name, values)
}

impl Cell {
    fn operation(&self) -> Option<Operation> {
        let workload = self.workload.as_deref()?;
        Operation::ALL.iter().find(|own| own.name() == workload).copied()
    }

    fn is_in(&self, unit: &str) -> bool {
        self.unit.as_deref() == Some(unit)
    }

    fn folio_bytes(&self) -> u64 {
        self.folio_kib.unwrap_or_default().saturating_mul(1024)
    }

    fn own(&self) -> Option<f64> {
        self.number("median")
    }

    /// The verdict in a column: a dash where nothing is judged.
    fn judgement(&self) -> &str {
        self.ok.map_or("-", |_| &self.verdict)
    }
}

/// The cells of one operation in folios of one size.
#[derive(Clone, Copy)]
struct Size<'a> {
    cells: &'a [Cell],
    operation: Operation,
    folio_kib: Option<u64>,
}

impl<'a> Size<'a> {
    /// Every size that `operation` was timed with.
    fn all(cells: &'a [Cell], operation: Operation) -> Vec<Size<'a>> {
        let mut sizes: Vec<Size> = Vec::new();
        for cell in cells.iter().filter(|cell| cell.operation() == Some(operation)) {
            if !sizes.iter().any(|size| size.folio_kib == cell.folio_kib) {
                sizes.push(Size { cells, operation, folio_kib: cell.folio_kib });
            }
        }
        sizes
    }

    fn find(self, counters: &str, unit: &str) -> Option<&'a Cell> {
        self.cells.iter().find(|cell| {
            cell.folio_kib == self.folio_kib
                && cell.is_in(unit)
                && cell.variant() == counters
                && cell.operation() == Some(self.operation)
        })
    }

    fn name(self) -> Value {
        bytes(self.folio_kib.unwrap_or_default() as f64 * 1024.0).into()
    }

    fn published(self, counters: &str) -> Value {
        changed(self.find(counters, PERCENT).and_then(|cell| cell.published), 0)
    }

    fn here(self, counters: &str) -> Value {
        changed(self.find(counters, PERCENT).and_then(Cell::own), 1)
    }

    fn judgement(self, counters: &str, unit: &str) -> Value {
        self.find(counters, unit).map_or("", Cell::judgement).into()
    }

    fn saved(self, counters: &str) -> Value {
        let saved = self.find(counters, SAVED).and_then(Cell::own);
        saved.map(|saved| format!("{saved:+.2}")).into()
    }

    /// What it came to in nanoseconds, and how that changed.
    fn compared(self) -> Option<Compared> {
        let timed = self.cells.iter().filter(|cell| {
            (cell.operation(), cell.folio_kib) == (Some(self.operation), self.folio_kib)
                && cell.is_in(PERCENT)
        });
        let configuration = |counters: &str, ns_per_page, change| {
            let copied = self.find(counters, COPIED);
            let count = |of: &str| copied.and_then(|cell| cell.read(of));
            let (copied, reused) = (count("copied"), count("reused"));
            Configuration { counters: counters.to_string(), ns_per_page, copied, reused, change }
        };
        let first = timed.clone().next()?;
        let base = first.read("base_ns_per_page").map(|ns| configuration(PAGE_MAPCOUNT, ns, None));
        let others = timed.filter_map(|cell| {
            Some(configuration(cell.variant(), cell.read("ns_per_page")?, cell.read("change")))
        });
        Some(Compared {
            folio_bytes: first.folio_bytes(),
            operation: self.operation,
            locked_ns: first.read("locked_ns"),
            configurations: base.into_iter().chain(others).collect(),
        })
    }
}

/// A change in percent with its sign.
fn changed(value: Option<f64>, digits: usize) -> Value {
    let text = |value: f64| match value {
        0.0 => "0".to_string(),
        value => format!("{value:+.digits$}"),
    };
    value.map(text).into()
}

/// The published change of the time beside the one here, a row for each size.
fn times(operation: Operation, sizes: &[Size]) -> Table {
    let columns: [Column<Size>; 9] = [
        figures("folio", |of| of.name()),
        figures("mm-\nowner\npub\u{ad}\nlished", |of| of.published(MM_OWNER)),
        figures("here", |of| of.here(MM_OWNER)),
        words("", |of| of.judgement(MM_OWNER, PERCENT)),
        figures("no-page-\nmapcount\npub\u{ad}\nlished", |of| of.published(NO_PAGE_MAPCOUNT)),
        figures("here", |of| of.here(NO_PAGE_MAPCOUNT)),
        words("", |of| of.judgement(NO_PAGE_MAPCOUNT, PERCENT)),
        figures("plain\ncounts\nhere", |of| of.here(PLAIN_COUNTS)),
        figures("precise-\nowners\nhere", |of| of.here(PRECISE_OWNERS)),
    ];
    table(format!("{operation}: change of the time in %, - is faster"), &columns, sizes)
}

/// What is saved of a page in L, a row for each size.
fn savings(operation: Operation, sizes: &[Size]) -> Table {
    let columns: [Column<Size>; 8] = [
        figures("folio", |of| of.name()),
        figures("base,\nns", |of| {
            let cell = of.find(MM_OWNER, PERCENT);
            digits(cell.and_then(|cell| cell.number("base_ns_per_page/median")), 1)
        }),
        figures("plain\ncounts", |of| of.saved(PLAIN_COUNTS)),
        figures("mm-owner", |of| of.saved(MM_OWNER)),
        figures("no-page-\nmapcount", |of| of.saved(NO_PAGE_MAPCOUNT)),
        words("", |of| of.judgement(NO_PAGE_MAPCOUNT, SAVED)),
        figures("precise-\nowners", |of| of.saved(PRECISE_OWNERS)),
        figures(OF_A_FOLIO, |of| {
            let cell = of.find(MM_OWNER, PERCENT);
            let extra = cell.and_then(|cell| cell.number("change/extra_locked_per_folio/median"));
            extra.map(|extra| format!("{:+.2}", -extra)).into()
        }),
    ];
    table(format!("{operation}: saving of a page in L, + is faster"), &columns, sizes)
}

/// What is tolerated of the cells of a table that do not hold; `None` where all of them hold.
fn missed(operation: Operation, unit: &str, cells: &[Cell]) -> Option<Part> {
    let is_missed = |cell: &&Cell| {
        cell.operation() == Some(operation) && cell.is_in(unit) && cell.ok == Some(false)
    };
    let mut alike: Vec<(&Cell, Vec<String>)> = Vec::new();
    for own in cells.iter().filter(is_missed) {
        let size = bytes(own.folio_bytes() as f64);
        let is_alike = |(other, _): &&mut (&Cell, _)| {
            (&other.variant, &other.tolerance) == (&own.variant, &own.tolerance)
        };
        match alike.iter_mut().find(is_alike) {
            Some((_, sizes)) => sizes.push(size),
            None => alike.push((own, vec![size])),
        }
    }
    let line = |(own, sizes): (&Cell, Vec<String>)| {
        let (tolerance, verdict) = (own.tolerance.as_deref().unwrap_or("none"), &own.verdict);
        format!("{} {verdict} at {}. Tolerated: {tolerance}.", own.variant(), sizes.join(", "))
    };
    (!alike.is_empty()).then(|| Part::List(alike.into_iter().map(line).collect()))
}

pub fn parts(cells: &[Cell]) -> Vec<Part> {
    let benchmark = cells.iter().find(|cell| cell.is_of(BENCHMARK));
    // Earlier records have no benchmark; one thread copies or reuses every page.
    let pages = cells.iter().find(|cell| {
        cell.is_in(COPIED) && cell.operation().is_some_and(Operation::is_of_one_thread)
    });
    let pages = pages.map_or(0, |cell| cell.count("copied").saturating_add(cell.count("reused")));
    let sizes = Operation::ALL.iter().flat_map(|of| Size::all(cells, *of));
    let all: Vec<Compared> = sizes.filter_map(Size::compared).collect();
    let mut parts: Vec<Part> =
        benchmark.map(|cell| Part::Paragraph(form(cell))).into_iter().collect();
    parts.push(Part::Paragraph(judged(cells)));
    let reuse = reuse(&fault_ns(cells));
    parts.push(Part::Paragraph(note("carries_over", &[("reuse", reuse)])));
    for operation in Operation::OF_ONE_THREAD {
        let own = Size::all(cells, operation);
        parts.push(Part::Table(times(operation, &own)));
        parts.extend(missed(operation, PERCENT, cells));
        if !operation.writes() {
            parts.push(Part::Table(savings(operation, &own)));
            parts.extend(missed(operation, SAVED, cells));
        }
    }
    parts.extend(noise(cells).map(Part::Paragraph));
    let anon_cow = [Operation::AnonCowSeq, Operation::AnonCowRand];
    parts.extend(anon_cow.into_iter().filter_map(|of| folio_ops::changes(of, &all)));
    let said = PUBLISHED.mm_owner.vm_scalability.iter();
    let said = said.map(|(case, said)| format!("{}: {said}", case.replace('_', "-")));
    let said = said.collect::<Vec<_>>().join("; ");
    parts.push(Part::Paragraph(note("anon_cow", &[("said", said)])));
    let has_large = all.iter().any(|of| of.folio_bytes > PAGE_BYTES);
    parts.extend(folio_ops::contended(&[contended(cells)], has_large));
    parts.extend(folio_ops::with_faults(&all));
    parts.extend(folio_ops::copies(&all, pages));
    parts.extend(copied_otherwise(cells).map(Part::Paragraph));
    parts.extend(counting::parts(cells));
    parts
}

/// What threads got done on one folio, of all repeats.
fn contended(cells: &[Cell]) -> FolioOpsRun {
    let of = |cell: &Cell| Contended {
        folio_bytes: cell.folio_bytes(),
        counters: cell.variant().to_string(),
        batches_per_second: cell.read("batches_per_second").unwrap_or_default(),
        wait_batches: cell.count("wait_batches"),
        longest_wait_ns: cell.read("longest_wait_ns"),
    };
    let contended = cells.iter().filter(|cell| cell.is_of(ONE_FOLIO)).map(of).collect();
    FolioOpsRun { contended, ..FolioOpsRun::default() }
}

/// What was run, and how long it takes.
fn form(benchmark: &Cell) -> String {
    let memory = benchmark.count("bytes");
    let locked =
        benchmark.read("locked_ns").map_or(String::new(), |Figure { median, min, max, .. }| {
            let [median, min, max] = [median, min, max].map(|ns| format!("{ns:.2}"));
            format!(" {}", note("locked", &[("median", median), ("min", min), ("max", max)]))
        });
    let values = [
        ("memory", bytes(memory as f64)),
        ("runs", benchmark.count("runs").to_string()),
        ("mad", MAD.to_string()),
        ("locked", locked),
        ("length", note(Form::of_bytes(memory).note(), &[])),
    ];
    note("form", &values)
}

/// What is judged how.
fn judged(cells: &[Cell]) -> String {
    let said = |name: &str, is_exact: bool| {
        let own = cells.iter().filter(|cell| cell.is_in(COPIED) == is_exact);
        let judged: Vec<bool> = own.filter_map(|cell| cell.ok).collect();
        let hold = judged.iter().filter(|ok| **ok).count().to_string();
        let values = [("hold", hold), ("all", judged.len().to_string())];
        (is_exact || !judged.is_empty()).then(|| note(name, &values))
    };
    [said("exact", true), said("times", false)].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Which counts of copied pages are not as published, if there are such.
fn copied_otherwise(cells: &[Cell]) -> Option<String> {
    let failed = cells.iter().filter(|cell| cell.is_in(COPIED) && cell.ok == Some(false));
    let name = |cell: &Cell| {
        let (size, workload) = (bytes(cell.folio_bytes() as f64), cell.workload.as_deref());
        format!("{} with {} at {size}", workload.unwrap_or_default(), cell.variant())
    };
    let failed: Vec<String> = failed.map(name).collect();
    (!failed.is_empty()).then(|| format!("Not as published: {}.", failed.join("; ")))
}

/// For both configurations of the series, with which cost of a fault in nanoseconds the published
/// change of writes that reuse pages comes out. It is negative where they gain less than published.
fn fault_ns(cells: &[Cell]) -> Vec<f64> {
    let of = |cell: &Cell| {
        let is_reuse = cell.operation()?.reuses() && cell.folio_bytes() > PAGE_BYTES;
        let published = cell.published.filter(|percent| is_reuse && *percent < 0.0)?;
        Some(cell.number("base_ns_per_page/median")? * (cell.own()? / published - 1.0))
    };
    cells.iter().filter(|cell| cell.is_in(PERCENT)).filter_map(of).collect()
}

/// In how many cells reuse gains more than was published, and which costs of a fault explain that.
/// `faults_ns` has the cost of each cell, which is negative where it gains less.
fn reuse(faults_ns: &[f64]) -> String {
    if faults_ns.is_empty() {
        return String::new();
    }
    let all = ("all", faults_ns.len().to_string());
    let explained = Figure::of(faults_ns.iter().copied().filter(|cost_ns| *cost_ns > 0.0));
    let Some(costs_ns) = explained else {
        return format!(" {}", note("no_reuse", &[all]));
    };
    let more = faults_ns.iter().filter(|cost_ns| **cost_ns > 0.0).count();
    let these = if more == faults_ns.len() { "them" } else { "these" };
    let values = [
        all,
        ("more", more.to_string()),
        ("min", format!("{:.0}", costs_ns.min)),
        ("max", format!("{:.0}", costs_ns.max)),
        ("these", these.to_string()),
    ];
    format!(" {}", note("reuse", &values))
}

/// Where folios of one page are timed: how far figures are off that ought to be 0.
fn noise(cells: &[Cell]) -> Option<String> {
    let single = cells.iter().filter(|cell| cell.folio_bytes() == PAGE_BYTES);
    let changes = single.filter(|cell| cell.is_in(PERCENT)).filter_map(Cell::own);
    let most = changes.map(f64::abs).reduce(f64::max)?;
    Some(note("noise", &[("most", format!("{most:.1}"))]))
}

const ROWS: [Column<Cell>; 10] = [
    raw("series", |_| NAME.into()),
    raw("workload", |cell| cell.workload.clone().into()),
    raw("folio_kib", |cell| cell.folio_kib.into()),
    raw("variant", |cell| cell.variant().into()),
    raw("unit", |cell| cell.unit.clone().into()),
    raw("published", |cell| cell.published.into()),
    raw("here", |cell| cell.own().into()),
    raw("error", |cell| cell.error.into()),
    raw("ok", |cell| cell.ok.map(|ok| ok.to_string()).into()),
    raw("verdict", |cell| cell.verdict.clone().into()),
];

/// Every cell of an operation as one row.
pub fn rows(cells: &[Cell]) -> Table {
    let own: Vec<Cell> = cells.iter().filter(|cell| cell.unit.is_some()).cloned().collect();
    csv(&ROWS, &own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reuse_gains_is_said_as_it_came_out() {
        assert_eq!(reuse(&[]), "");
        let more = reuse(&[100.0, 300.0]);
        assert!(more.contains("in 2 of 2 cells. With 100 to 300 ns more"), "{more}");
        let some = reuse(&[-200.0, 50.0, 100.0]);
        assert!(some.contains("in 2 of 3 cells. With 50 to 100 ns more"), "{some}");
        let none = reuse(&[-200.0, 0.0]);
        assert!(none.contains("In none of 2 cells") && !none.contains("ns more"), "{none}");
    }
}
