//! The tables on the workload `folio-ops`.

use filemap_job::FolioOpsRun;
use filemap_job::folio_ops::{
    CONFIGURATIONS, Contended, KERNEL, MM_OWNER, NO_PAGE_MAPCOUNT, Operation, PAGE_MAPCOUNT,
};

use super::compared::{Change, Compared, Configuration, FAULT_NS, Figure};
use filemap_report::units::{bytes, number, time};
use filemap_report::{Head, SOFT_HYPHEN, Table};

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

/// The ways to count that are held against the base.
fn others() -> impl Iterator<Item = &'static str> {
    CONFIGURATIONS.into_iter().filter(|name| *name != PAGE_MAPCOUNT)
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

/// By how many percent the time of a page changes.
pub(super) fn changes(operation: Operation, all: &[&Compared]) -> Table {
    let cell = |change: &Change| {
        let mark = if change.differs { "" } else { "~" };
        format!("{mark}{:+.1} ({:.1})", change.percent.median, change.percent.mad)
    };
    let title = format!("{operation}: change of the time of a page in % (MAD), - is faster");
    let rows = all.iter().map(|of| {
        let base = of.configuration(PAGE_MAPCOUNT);
        let ns = base.map_or("-".to_string(), |base| format!("{:.2}", base.ns_per_page.median));
        [folio_name(of.folio_bytes), ns].into_iter().chain(of_others(of, cell)).collect()
    });
    Table { title, columns: columns(Some("base,\nns")), rows: rows.collect() }
}

/// The heading of what slots save of a folio, which is less than nothing where they take more.
pub(crate) const OF_A_FOLIO: &str = "mm-owner:\nof a\nfolio";

/// What each saves of a page, in L.
fn savings(operation: Operation, all: &[&Compared]) -> Table {
    let cell = |change: &Change| {
        change.saved_locked.map_or("-".to_string(), |saved| signed_spread(&saved))
    };
    let mut columns = columns(None);
    columns.push(Head::right(OF_A_FOLIO));
    let rows = all.iter().map(|of| {
        let extra = of.change(MM_OWNER).and_then(|change| change.extra_locked_per_folio);
        let saved = extra.map_or("-".to_string(), |extra| signed(-extra.median));
        let first = [folio_name(of.folio_bytes)].into_iter();
        first.chain(of_others(of, cell)).chain([saved]).collect()
    });
    Table {
        title: format!("{operation}: saving of a page in L (MAD), + is faster"),
        columns,
        rows: rows.collect(),
    }
}

fn columns(second: Option<&str>) -> Vec<Head> {
    let first = [Some("folio"), second].into_iter().flatten().map(Head::right);
    first.chain(others().map(|name| Head::right(heading(name)))).collect()
}

fn of_others(of: &Compared, cell: impl Fn(&Change) -> String) -> Vec<String> {
    others().map(|name| of.change(name).map_or("-".to_string(), &cell)).collect()
}

/// What reuse gains with faults of several costs.
pub(super) fn with_faults(all: &[Compared]) -> Vec<Table> {
    let of_operation = |operation: Operation| {
        let own = Compared::of_operation(operation, all);
        let has = own.iter().any(|of| of.configuration(PAGE_MAPCOUNT).is_some());
        has.then(|| with_faults_of(operation, &own))
    };
    Operation::ALL.iter().filter(|of| of.reuses()).filter_map(|of| of_operation(*of)).collect()
}

fn with_faults_of(operation: Operation, all: &[&Compared]) -> Table {
    const SHOWN: [&str; 2] = [MM_OWNER, NO_PAGE_MAPCOUNT];
    let heads = SHOWN.iter().flat_map(|name| {
        FAULT_NS.iter().map(move |ns| Head::right(format!("{}\n{ns} ns", heading(name))))
    });
    let row = |of: &&Compared| {
        let cells = SHOWN.iter().flat_map(|name| {
            let percents = of.change(name).map_or(&[][..], |change| &change.percent_with_faults);
            FAULT_NS.map(|ns| {
                let found = percents.iter().find(|(fault_ns, _)| *fault_ns == ns);
                found.map_or("-".to_string(), |(_, percent)| format!("{percent:+.1}"))
            })
        });
        [folio_name(of.folio_bytes)].into_iter().chain(cells).collect()
    };
    Table {
        title: format!("{operation}: change in % with a fault's cost added, - is faster"),
        columns: [Head::right("folio")].into_iter().chain(heads).collect(),
        rows: all.iter().map(row).collect(),
    }
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

/// Threads on one folio; `None` where there was one CPU.
pub(super) fn contended(runs: &[FolioOpsRun]) -> Option<Table> {
    let all: Vec<&Contended> = runs.iter().flat_map(|run| &run.contended).collect();
    let key = |of: &Contended| (of.folio_bytes, of.counters.clone());
    let mut keys: Vec<(u64, String)> = Vec::new();
    for of in &all {
        if !keys.contains(&key(of)) {
            keys.push(key(of));
        }
    }
    let row = |(folio_bytes, counters): (u64, String)| {
        let is_own = |of: &&&Contended| (of.folio_bytes, &of.counters) == (folio_bytes, &counters);
        let own = || all.iter().filter(is_own);
        let sums = Figure::of(own().map(|of| of.batches_per_second.iter().sum::<f64>() / 1e3));
        let fairness = Figure::of(own().filter_map(|of| fairness(&of.batches_per_second)));
        let text = |figure: Option<Figure>, digits: usize| {
            figure.map_or("-".to_string(), |figure| spread(&figure, digits))
        };
        let longest = own().filter_map(|of| of.longest_wait_ns).max();
        let longest = longest.map_or("-".to_string(), |ns| time(ns as f64));
        vec![folio_name(folio_bytes), counters, text(sums, 0), text(fairness, 2), longest]
    };
    let heads = ["batches\na ms", "fairness", "longest\nwait"].map(Head::right);
    let first = [Head::right("folio"), Head::left("counters")];
    let mut table = Table {
        title: "Two threads that map and unmap one folio (MAD)".to_string(),
        columns: first.into_iter().chain(heads).collect(),
        rows: keys.into_iter().map(row).collect(),
    };
    if all.iter().all(|of| of.longest_wait_ns.is_none()) {
        table.columns.pop();
        table.rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What the slowest thread did for each that the fastest did.
fn fairness(batches_per_second: &[f64]) -> Option<f64> {
    let most = batches_per_second.iter().copied().fold(0.0, f64::max);
    let least = batches_per_second.iter().copied().fold(f64::MAX, f64::min);
    (most > 0.0).then(|| least / most)
}

/// The spread of every time.
pub(super) fn spreads(all: &[Compared]) -> Table {
    let rows = all.iter().flat_map(|of| {
        of.configurations.iter().map(|own| {
            let Figure { median, mad, min, max } = own.ns_per_page;
            let first =
                [folio_name(of.folio_bytes), of.operation.to_string(), own.counters.clone()];
            let figures = [median, mad, min, max].map(|ns| format!("{ns:.2}"));
            first.into_iter().chain(figures).collect()
        })
    });
    let heads = ["median", "MAD", "min", "max"].map(Head::right);
    let first = [Head::right("folio"), Head::left("operation"), Head::left("counters")];
    Table {
        title: "Time of a page in ns".to_string(),
        columns: first.into_iter().chain(heads).collect(),
        rows: rows.collect(),
    }
}

fn spread(figure: &Figure, digits: usize) -> String {
    format!("{:.digits$} ({:.digits$})", figure.median, figure.mad)
}

fn signed_spread(figure: &Figure) -> String {
    format!("{} ({})", signed(figure.median), signed(figure.mad).trim_start_matches('+'))
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
