//! The tables on the workload `folio-ops`.

use filemap_job::FolioOpsRun;
use filemap_job::folio_ops::{
    CONFIGURATIONS, Contended, KERNEL, MM_OWNER, NO_PAGE_MAPCOUNT, Operation, PAGE_MAPCOUNT,
    PLAIN_COUNTS, PRECISE_OWNERS,
};

use super::compared::{Change, Compared, Configuration, FAULT_NS, Figure};
use filemap_report::units::{bytes, number, time};
use filemap_report::{Column, Head, SOFT_HYPHEN, Table, Value, digits, figures, table, words};

/// The size of a folio.
pub(crate) fn folio_name(folio_bytes: u64) -> String {
    bytes(folio_bytes as f64)
}

/// The heading of a way to count, on two lines where it is long.
fn heading(counters: &str) -> String {
    match counters {
        "plain-counts" => "plain\ncounts".to_string(),
        "no-page-mapcount" => "no-page-\nmapcount".to_string(),
        "precise-owners" => "precise-\nowners".to_string(),
        other => other.to_string(),
    }
}

/// Changes and savings of each operation, or the times alone where there is no base.
pub(super) fn of_times(all: &[Compared]) -> Vec<Table> {
    let has_base = |of: &Compared| of.configuration(PAGE_MAPCOUNT).is_some();
    if !all.iter().any(has_base) {
        let mut configurations = all.iter().flat_map(|of| &of.configurations);
        let spread = configurations.any(|own| own.ns_per_page.mad > 0.0);
        let spread = spread.then(|| times("The MAD of these times", all, |ns| ns.mad));
        let times = times("Time of a page in ns", all, |ns| ns.median);
        return [Some(times), spread].into_iter().flatten().collect();
    }
    let tables = operations(all).into_iter().flat_map(|operation| {
        let own = Compared::of_operation(operation, all);
        // Writes copy pages or reuse them: what that saves is not what counting takes.
        let saves = !operation.writes();
        let savings = saves.then(|| savings(operation, &own));
        [Some(changes(operation, &own)), savings].into_iter().flatten().collect::<Vec<_>>()
    });
    tables.collect()
}

/// The operations that were timed, in their order.
fn operations(all: &[Compared]) -> Vec<Operation> {
    let is_timed = |operation: &&Operation| all.iter().any(|of| of.operation == **operation);
    Operation::ALL.iter().filter(is_timed).copied().collect()
}

/// Time of a page: a row for each size, a column for each operation.
fn times(title: &str, all: &[Compared], figure: impl Fn(&Figure) -> f64) -> Table {
    let operations = operations(all);
    let row = |folio_bytes: u64| {
        let cell = |operation: &Operation| {
            let of =
                all.iter().find(|of| (of.folio_bytes, of.operation) == (folio_bytes, *operation));
            let own = of.and_then(|of| of.configurations.first());
            own.map_or("-".to_string(), |own| format!("{:.1}", figure(&own.ns_per_page)))
        };
        [folio_name(folio_bytes)].into_iter().chain(operations.iter().map(cell)).collect()
    };
    let heads =
        operations.iter().map(|operation| Head::right(operation.name().replacen("-", "-\n", 1)));
    Table {
        title: title.to_string(),
        columns: [Head::right("folio")].into_iter().chain(heads).collect(),
        rows: sizes(all).into_iter().map(row).collect(),
    }
}

fn sizes(all: &[Compared]) -> Vec<u64> {
    let mut sizes: Vec<u64> = all.iter().map(|of| of.folio_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

impl Compared {
    fn size(&self) -> Value {
        folio_name(self.folio_bytes).into()
    }

    fn changed(&self, counters: &str) -> Value {
        let cell = |change: &Change| {
            let mark = if change.differs { "" } else { "~" };
            format!("{mark}{:+.1} ({:.1})", change.percent.median, change.percent.mad)
        };
        self.change(counters).map(cell).into()
    }

    fn saved(&self, counters: &str) -> Value {
        let saved = self.change(counters).and_then(|change| change.saved_locked);
        let mad = |of: &Figure| signed(of.mad).trim_start_matches('+').to_string();
        saved.map(|of| format!("{} ({})", signed(of.median), mad(&of))).into()
    }

    /// The change in percent with the fault cost of that number added.
    fn with_fault(&self, counters: &str, number: usize) -> Value {
        let percents = self.change(counters).map_or(&[][..], |of| &of.percent_with_faults);
        let found = percents.iter().find(|(fault_ns, _)| *fault_ns == FAULT_NS[number]);
        found.map(|(_, percent)| format!("{percent:+.1}")).into()
    }
}

/// By how many percent the time of a page changes.
pub(super) fn changes(operation: Operation, all: &[&Compared]) -> Table {
    let columns: [Column<&Compared>; 6] = [
        figures("folio", |of| of.size()),
        figures("base,\nns", |of| {
            digits(of.configuration(PAGE_MAPCOUNT).map(|base| base.ns_per_page.median), 2)
        }),
        figures("plain\ncounts", |of| of.changed(PLAIN_COUNTS)),
        figures("mm-owner", |of| of.changed(MM_OWNER)),
        figures("no-page-\nmapcount", |of| of.changed(NO_PAGE_MAPCOUNT)),
        figures("precise-\nowners", |of| of.changed(PRECISE_OWNERS)),
    ];
    let title = format!("{operation}: change of the time of a page in % (MAD), - is faster");
    table(title, &columns, all)
}

/// The heading of what slots save of a folio, which is less than nothing where they take more.
pub(crate) const OF_A_FOLIO: &str = "mm-owner:\nof a\nfolio";

/// What each saves of a page, in L.
fn savings(operation: Operation, all: &[&Compared]) -> Table {
    let columns: [Column<&Compared>; 6] = [
        figures("folio", |of| of.size()),
        figures("plain\ncounts", |of| of.saved(PLAIN_COUNTS)),
        figures("mm-owner", |of| of.saved(MM_OWNER)),
        figures("no-page-\nmapcount", |of| of.saved(NO_PAGE_MAPCOUNT)),
        figures("precise-\nowners", |of| of.saved(PRECISE_OWNERS)),
        figures(OF_A_FOLIO, |of| {
            let extra = of.change(MM_OWNER).and_then(|change| change.extra_locked_per_folio);
            extra.map(|extra| signed(-extra.median)).into()
        }),
    ];
    table(format!("{operation}: saving of a page in L (MAD), + is faster"), &columns, all)
}

/// What reuse gains with faults of several costs.
pub(super) fn with_faults(all: &[Compared]) -> Vec<Table> {
    let of_operation = |operation: Operation| {
        let own = Compared::of_operation(operation, all);
        let has = own.iter().any(|of| of.configuration(PAGE_MAPCOUNT).is_some());
        let columns: [Column<&Compared>; 7] = [
            figures("folio", |of| of.size()),
            figures("mm-owner\n0 ns", |of| of.with_fault(MM_OWNER, 0)),
            figures("mm-owner\n360 ns", |of| of.with_fault(MM_OWNER, 1)),
            figures("mm-owner\n800 ns", |of| of.with_fault(MM_OWNER, 2)),
            figures("no-page-\nmapcount\n0 ns", |of| of.with_fault(NO_PAGE_MAPCOUNT, 0)),
            figures("no-page-\nmapcount\n360 ns", |of| of.with_fault(NO_PAGE_MAPCOUNT, 1)),
            figures("no-page-\nmapcount\n800 ns", |of| of.with_fault(NO_PAGE_MAPCOUNT, 2)),
        ];
        let title = format!("{operation}: change in % with a fault's cost added, - is faster");
        has.then(|| table(title, &columns, &own))
    };
    Operation::ALL.iter().filter(|of| of.reuses()).filter_map(|of| of_operation(*of)).collect()
}

/// What write faults did, for neighbouring sizes that are alike together; `None` where nobody
/// counts.
pub(super) fn copies(all: &[Compared], pages: u64) -> Option<Table> {
    let mut rows: Vec<(Vec<u64>, Vec<String>)> = Vec::new();
    let is_there = |name: &&str| all.iter().any(|of| of.configuration(name).is_some());
    let names = [KERNEL].into_iter().chain(CONFIGURATIONS).filter(is_there);
    let names: Vec<&str> = names.collect();
    let writes = all.iter().filter(|of| of.operation.writes());
    for of in writes.filter(|of| of.configurations.iter().any(|own| own.copied.is_some())) {
        let copied = |name: &&str| {
            let own = of.configuration(name);
            own.map_or("-".to_string(), |own| copied(of.operation, own, pages))
        };
        let name = of.operation.to_string();
        let row: Vec<String> = [name].into_iter().chain(names.iter().map(copied)).collect();
        // A size between that differs has a row, after which another one begins.
        let last = rows.iter_mut().rev().find(|(_, known)| known[0] == row[0]);
        match last.filter(|(_, known)| *known == row) {
            Some((sizes, _)) => sizes.push(of.folio_bytes),
            None => rows.push((vec![of.folio_bytes], row)),
        }
    }
    rows.sort_by(|(_, one), (_, other)| one[0].cmp(&other[0]));
    let heads = names.iter().map(|name| {
        Head::right(match *name {
            PAGE_MAPCOUNT => format!("page-\nmap{SOFT_HYPHEN}\ncount"),
            MM_OWNER => "mm-\nowner".to_string(),
            other => heading(other),
        })
    });
    let first = [Head::left("operation"), Head::right("folio")];
    let row = |(sizes, row): (Vec<u64>, Vec<String>)| {
        let [least, most] = [sizes[0], sizes[sizes.len() - 1]].map(folio_name);
        let size = if least == most { least } else { format!("{least}-{most}") };
        let mut row = row.into_iter();
        row.next().into_iter().chain([size]).chain(row).collect()
    };
    (!rows.is_empty()).then(|| Table {
        title: "Pages that write faults copied, in every repeat; they reused the others"
            .to_string(),
        columns: first.into_iter().chain(heads).collect(),
        rows: rows.into_iter().map(row).collect(),
    })
}

/// How many of the pages were copied. Children write to a part of the memory each.
fn copied(operation: Operation, own: &Configuration, pages: u64) -> String {
    let is_all = |copied: u64| copied == pages || !operation.is_of_one_thread();
    match (own.copied, own.reused) {
        (Some(0), _) => "none".to_string(),
        (Some(copied), Some(0)) if is_all(copied) => "all".to_string(),
        (Some(copied), _) => number(copied as f64),
        (None, _) => "?".to_string(),
    }
}

/// What threads did on folios of one size with one way to count, in all repeats.
type OnOneFolio<'a> = Vec<&'a Contended>;

/// Threads on one folio; `None` where there was one CPU.
pub(super) fn contended(runs: &[FolioOpsRun]) -> Option<Table> {
    let mut rows: Vec<OnOneFolio> = Vec::new();
    for of in runs.iter().flat_map(|run| &run.contended) {
        let key = |of: &Contended| (of.folio_bytes, of.counters.clone());
        match rows.iter_mut().find(|known| key(known[0]) == key(of)) {
            Some(known) => known.push(of),
            None => rows.push(vec![of]),
        }
    }
    let columns: [Column<OnOneFolio>; 5] = [
        figures("folio", |all| folio_name(all[0].folio_bytes).into()),
        words("counters", |all| all[0].counters.clone().into()),
        figures("batches\na ms", |all| {
            let sum = |of: &&Contended| of.batches_per_second.iter().sum::<f64>() / 1e3;
            spread(Figure::of(all.iter().map(sum)), 0)
        }),
        figures("fairness", |all| {
            spread(Figure::of(all.iter().filter_map(|of| fairness(&of.batches_per_second))), 2)
        }),
        figures("longest\nwait", |all| {
            all.iter().filter_map(|of| of.longest_wait_ns).max().map(|ns| time(ns as f64)).into()
        }),
    ];
    let waited = rows.iter().flatten().any(|of| of.longest_wait_ns.is_some());
    let columns = if waited { &columns[..] } else { &columns[..4] };
    let title = "Two threads that map and unmap one folio (MAD)";
    (!rows.is_empty()).then(|| table(title, columns, &rows))
}

/// What the slowest thread did for each that the fastest did.
fn fairness(batches_per_second: &[f64]) -> Option<f64> {
    let most = batches_per_second.iter().copied().fold(0.0, f64::max);
    let least = batches_per_second.iter().copied().fold(f64::MAX, f64::min);
    (most > 0.0).then(|| least / most)
}

fn spread(figure: Option<Figure>, digits: usize) -> Value {
    figure.map(|of| format!("{:.digits$} ({:.digits$})", of.median, of.mad)).into()
}

/// The spread of every time.
pub(super) fn spreads(all: &[Compared]) -> Table {
    let columns: [Column<(&Compared, &Configuration)>; 7] = [
        figures("folio", |(of, _)| of.size()),
        words("operation", |(of, _)| of.operation.to_string().into()),
        words("counters", |(_, own)| own.counters.clone().into()),
        figures("median", |(_, own)| digits(Some(own.ns_per_page.median), 2)),
        figures("MAD", |(_, own)| digits(Some(own.ns_per_page.mad), 2)),
        figures("min", |(_, own)| digits(Some(own.ns_per_page.min), 2)),
        figures("max", |(_, own)| digits(Some(own.ns_per_page.max), 2)),
    ];
    let rows = all.iter().flat_map(|of| of.configurations.iter().map(move |own| (of, own)));
    table("Time of a page in ns", &columns, &rows.collect::<Vec<_>>())
}

/// A number with its sign and three digits or so.
fn signed(value: f64) -> String {
    match value.abs() {
        small if small < 9.995 => format!("{value:+.2}"),
        middle if middle < 99.95 => format!("{value:+.1}"),
        _ => format!("{value:+.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_neighbours_that_are_alike_share_a_row() {
        let of = |order: u32, copied: u64| Compared {
            folio_bytes: 4096 << order,
            operation: Operation::ReuseByte,
            locked_ns: None,
            configurations: vec![Configuration {
                counters: MM_OWNER.to_string(),
                ns_per_page: Figure::of([1.0]).unwrap(),
                copied: Some(copied),
                reused: None,
                change: None,
            }],
        };
        let table = copies(&[of(2, 0), of(3, 0), of(4, 7), of(5, 0), of(6, 0)], 512).unwrap();
        let rows: Vec<_> = table.rows.iter().map(|row| (row[1].as_str(), &row[2][..])).collect();
        let alike = [("16 KiB-32 KiB", "none"), ("64 KiB", "7"), ("128 KiB-256 KiB", "none")];
        assert_eq!(rows, alike);
    }
}
