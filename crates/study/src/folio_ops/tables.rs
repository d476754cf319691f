//! The tables on operations over folios.

use filemap_job::folio_ops::{
    MM_OWNER, NO_PAGE_MAPCOUNT, Operation, PAGE_MAPCOUNT, PLAIN_COUNTS, PRECISE_OWNERS, SCHEMES,
};
use filemap_report::units::{bytes, number};
use filemap_report::{
    Column, Head, SOFT_HYPHEN, Table, figure_column, fixed, text_column, text_table,
};

use super::comparison::{FAULT_NS, Figure, OperationComparison, SchemeFigures};

/// The schemes that are compared with the base.
const OTHERS: [&str; 4] = [PLAIN_COUNTS, MM_OWNER, NO_PAGE_MAPCOUNT, PRECISE_OWNERS];

/// The heading of a scheme, on two lines if it is long.
fn heading(counters: &str) -> Head {
    Head::number(match counters {
        MM_OWNER => counters.to_string(),
        counters => match counters.rsplit_once('-') {
            Some((first, "counts")) => format!("{first}\ncounts"),
            Some((first, last)) => format!("{first}-\n{last}"),
            None => counters.to_string(),
        },
    })
}

/// The size of a folio.
fn size(comparison: &OperationComparison) -> String {
    bytes(comparison.folio_bytes as f64)
}

/// Changes and savings of each operation.
pub(super) fn times(all: &[OperationComparison]) -> Vec<Table> {
    let tables = Operation::ALL.iter().flat_map(|operation| {
        let own: Vec<&OperationComparison> =
            all.iter().filter(|comparison| comparison.operation == *operation).collect();
        // Writes copy or reuse pages, so that their savings are not the cost of counting.
        let savings = (!operation.writes()).then(|| savings(*operation, &own));
        [Some(changes(*operation, &own)), savings]
    });
    tables.flatten().filter(|table| !table.rows.is_empty()).collect()
}

/// Changes of the time of a page in percent.
fn changes(operation: Operation, own: &[&OperationComparison]) -> Table {
    let row = |comparison: &&OperationComparison| {
        let base = comparison.scheme(PAGE_MAPCOUNT);
        let base = base.map_or("-".to_string(), |base| format!("{:.2}", base.ns_per_page.median));
        let changed = OTHERS.map(|counters| {
            comparison.change(counters).map_or("-".to_string(), |change| {
                let mark = if change.differs { "" } else { "~" };
                format!("{mark}{:+.1} ({:.1})", change.percent.median, change.percent.mad)
            })
        });
        [size(comparison), base].into_iter().chain(changed).collect()
    };
    Table {
        title: format!("{operation}: change of the time of a page in % (MAD), - is faster"),
        columns: ["folio", "base,\nns"]
            .map(Head::number)
            .into_iter()
            .chain(OTHERS.map(heading))
            .collect(),
        rows: own.iter().map(row).collect(),
    }
}

/// Savings of a page in L, and of a folio with slots.
fn savings(operation: Operation, own: &[&OperationComparison]) -> Table {
    let row = |comparison: &&OperationComparison| {
        let saved = OTHERS.map(|counters| {
            let saved = comparison.change(counters).and_then(|change| change.saved_locked);
            let mad = |figure: Figure| signed(figure.mad).trim_start_matches('+').to_string();
            saved.map_or("-".to_string(), |figure| {
                format!("{} ({})", signed(figure.median), mad(figure))
            })
        });
        let extra = comparison.change(MM_OWNER).and_then(|change| change.extra_locked_per_folio);
        let extra = extra.map_or("-".to_string(), |extra| signed(-extra.median));
        [size(comparison)].into_iter().chain(saved).chain([extra]).collect()
    };
    let last = Head::number("mm-owner:\nof a\nfolio");
    Table {
        title: format!("{operation}: saving of a page in L (MAD), + is faster"),
        columns: [Head::number("folio")]
            .into_iter()
            .chain(OTHERS.map(heading))
            .chain([last])
            .collect(),
        rows: own.iter().map(row).collect(),
    }
}

/// Changes of reuse with several costs of a fault.
pub(super) fn with_faults(all: &[OperationComparison]) -> Vec<Table> {
    let columns = || {
        let schemes = [MM_OWNER, NO_PAGE_MAPCOUNT].into_iter();
        schemes.flat_map(|counters| FAULT_NS.map(|fault_ns| (counters, fault_ns)))
    };
    let operation_table = |operation: &Operation| {
        let own = all.iter().filter(|comparison| {
            comparison.operation == *operation && comparison.change(MM_OWNER).is_some()
        });
        let row = |comparison: &OperationComparison| {
            let percents = columns().map(|(counters, fault_ns)| {
                let mut percents = comparison.change(counters)?.percent_with_faults.iter();
                percents.find(|(own_ns, _)| *own_ns == fault_ns)
            });
            let cell = |found: Option<&(u64, f64)>| {
                found.map_or("-".to_string(), |(_, percent)| format!("{percent:+.1}"))
            };
            [size(comparison)].into_iter().chain(percents.map(cell)).collect()
        };
        let heads = columns()
            .map(|(counters, ns)| Head::number(format!("{}\n{ns} ns", heading(counters).name)));
        Table {
            title: format!("{operation}: change in % with a fault's cost added, - is faster"),
            columns: [Head::number("folio")].into_iter().chain(heads).collect(),
            rows: own.map(row).collect(),
        }
    };
    let tables = Operation::ALL.iter().filter(|operation| operation.reuses()).map(operation_table);
    tables.filter(|table| !table.rows.is_empty()).collect()
}

/// Copies by write faults, with equal neighbouring sizes in one row; `None` if there are none.
pub(super) fn copies(all: &[OperationComparison], pages: u64) -> Option<Table> {
    let is_present = |name: &&str| all.iter().any(|comparison| comparison.scheme(name).is_some());
    let names: Vec<&str> = SCHEMES.into_iter().filter(is_present).collect();
    let counts = |comparison: &OperationComparison| {
        comparison.configurations.iter().any(|own| own.copied.is_some())
    };
    let cells = |comparison: &OperationComparison| -> Vec<String> {
        let own = |name: &&str| comparison.scheme(name);
        names.iter().map(own).map(|own| copied_text(comparison.operation, own, pages)).collect()
    };
    let rows = Operation::ALL.iter().filter(|operation| operation.writes()).flat_map(|operation| {
        let own = all
            .iter()
            .filter(|comparison| comparison.operation == *operation && counts(comparison));
        let own: Vec<&OperationComparison> = own.collect();
        let alike = own.chunk_by(|one, other| cells(one) == cells(other)).map(|alike| {
            let (least, most) = (size(alike[0]), size(alike[alike.len() - 1]));
            let sizes = if least == most { least } else { format!("{least}-{most}") };
            [operation.to_string(), sizes].into_iter().chain(cells(alike[0])).collect()
        });
        alike.collect::<Vec<Vec<String>>>()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let heads = names.iter().map(|name| match *name {
        PAGE_MAPCOUNT => Head::number(format!("page-\nmap{SOFT_HYPHEN}\ncount")),
        MM_OWNER => Head::number("mm-\nowner"),
        other => heading(other),
    });
    (!rows.is_empty()).then(|| Table {
        title: "Pages that write faults copied, in every repeat; they reused the others"
            .to_string(),
        columns: [Head::text("operation"), Head::number("folio")]
            .into_iter()
            .chain(heads)
            .collect(),
        rows,
    })
}

/// Number of copied pages. Each child writes to its own part of the memory.
fn copied_text(operation: Operation, own: Option<&SchemeFigures>, pages: u64) -> String {
    let is_all = |copied: u64| copied == pages || !operation.is_single_threaded();
    match own.map(|own| (own.copied, own.reused)) {
        None => "-".to_string(),
        Some((Some(0), _)) => "none".to_string(),
        Some((Some(copied), Some(0))) if is_all(copied) => "all".to_string(),
        Some((Some(copied), _)) => number(copied as f64),
        Some((None, _)) => "?".to_string(),
    }
}

/// The spread of every time.
pub(super) fn spreads(all: &[OperationComparison]) -> Table {
    let columns: [Column<(&OperationComparison, &SchemeFigures)>; 7] = [
        figure_column("folio", |(comparison, _)| size(comparison).into()),
        text_column("operation", |(comparison, _)| comparison.operation.to_string().into()),
        text_column("counters", |(_, own)| own.counters.clone().into()),
        figure_column("median", |(_, own)| fixed(Some(own.ns_per_page.median), 2)),
        figure_column("MAD", |(_, own)| fixed(Some(own.ns_per_page.mad), 2)),
        figure_column("min", |(_, own)| fixed(Some(own.ns_per_page.min), 2)),
        figure_column("max", |(_, own)| fixed(Some(own.ns_per_page.max), 2)),
    ];
    let rows = all
        .iter()
        .flat_map(|comparison| comparison.configurations.iter().map(move |own| (comparison, own)));
    text_table("Time of a page in ns", &columns, &rows.collect::<Vec<_>>())
}

/// A number with its sign and about three digits.
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
    fn equal_neighbours_share_a_row() {
        let comparison = |order: u32, copied: u64| OperationComparison {
            folio_bytes: 4096 << order,
            operation: Operation::ReuseByte,
            locked_ns: None,
            configurations: vec![SchemeFigures {
                counters: MM_OWNER.to_string(),
                ns_per_page: Figure::from_samples([1.0]).unwrap(),
                copied: Some(copied),
                reused: None,
                change: None,
            }],
        };
        let table = copies(
            &[
                comparison(2, 0),
                comparison(3, 0),
                comparison(4, 7),
                comparison(5, 0),
                comparison(6, 0),
            ],
            512,
        )
        .unwrap();
        let rows: Vec<_> = table.rows.iter().map(|row| (row[1].as_str(), &row[2][..])).collect();
        let alike = [("16 KiB-32 KiB", "none"), ("64 KiB", "7"), ("128 KiB-256 KiB", "none")];
        assert_eq!(rows, alike);
    }
}
