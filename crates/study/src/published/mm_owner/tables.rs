//! The tables of the series.

use filemap_job::folio_ops::{
    MM_OWNER, NO_PAGE_MAPCOUNT, Operation, PAGE_MAPCOUNT, PLAIN_COUNTS, PRECISE_OWNERS,
};

use super::published_vs_model::{Beside, What, extra_locked};
use crate::folio_ops::{Compared, OF_A_FOLIO};
use filemap_report::Part;
use filemap_report::units::bytes;
use filemap_report::{Head, Table};

/// The published change of the time beside the one here, a row for each size.
pub(super) fn times(operation: Operation, all: &[&Compared], beside: &[Beside]) -> Table {
    let names = [
        "mm-\nowner\npub\u{ad}\nlished",
        "here",
        "",
        "no-page-\nmapcount\npub\u{ad}\nlished",
        "here",
        "",
        "plain\ncounts\nhere",
        "precise-\nowners\nhere",
    ];
    let row = |of: &&Compared| {
        let find = |counters: &str| find(beside, of, counters, What::Time);
        let mut row = vec![bytes(of.folio_bytes as f64)];
        for own in [MM_OWNER, NO_PAGE_MAPCOUNT].map(find) {
            row.push(percent(own.and_then(|own| own.published), 0));
            row.push(percent(own.and_then(|own| own.own), 1));
            row.push(own.map_or(String::new(), |own| verdict(own)));
        }
        row.extend(
            [PLAIN_COUNTS, PRECISE_OWNERS]
                .map(|counters| percent(find(counters).and_then(|own| own.own), 1)),
        );
        row
    };
    Table {
        title: format!("{operation}: change of the time in %, - is faster"),
        columns: columns(&names),
        rows: all.iter().map(row).collect(),
    }
}

/// What is saved of a page in L, a row for each size.
pub(super) fn savings(operation: Operation, all: &[&Compared], beside: &[Beside]) -> Table {
    let names = [
        "base,\nns",
        "plain\ncounts",
        "mm-owner",
        "no-page-\nmapcount",
        "",
        "precise-\nowners",
        OF_A_FOLIO,
    ];
    let row = |of: &&Compared| {
        let find = |counters: &str| find(beside, of, counters, What::Saving);
        let saved = |counters: &str| {
            let own = find(counters).and_then(|own| own.own);
            own.map_or("-".to_string(), |own| format!("{own:+.2}"))
        };
        let base = of.configuration(PAGE_MAPCOUNT);
        let extra = extra_locked(of).map(|extra| -extra.median);
        let of_a_folio = extra.map_or("-".to_string(), |saved| format!("{saved:+.2}"));
        vec![
            bytes(of.folio_bytes as f64),
            base.map_or("-".to_string(), |base| format!("{:.1}", base.ns_per_page.median)),
            saved(PLAIN_COUNTS),
            saved(MM_OWNER),
            saved(NO_PAGE_MAPCOUNT),
            find(NO_PAGE_MAPCOUNT).map_or(String::new(), verdict),
            saved(PRECISE_OWNERS),
            of_a_folio,
        ]
    };
    Table {
        title: format!("{operation}: saving of a page in L, + is faster"),
        columns: columns(&names),
        rows: all.iter().map(row).collect(),
    }
}

/// What is tolerated of the cells of a table that do not hold; `None` where all of them hold.
pub(super) fn missed(operation: Operation, what: What, beside: &[Beside]) -> Option<Part> {
    let is_missed =
        |own: &&Beside| (own.of.operation, own.what, own.ok) == (operation, what, Some(false));
    let mut alike: Vec<(&Beside, Vec<String>)> = Vec::new();
    for own in beside.iter().filter(is_missed) {
        let size = bytes(own.of.folio_bytes as f64);
        let is_alike = |(other, _): &&mut (&Beside, _)| {
            (other.counters, &other.tolerance) == (own.counters, &own.tolerance)
        };
        match alike.iter_mut().find(is_alike) {
            Some((_, sizes)) => sizes.push(size),
            None => alike.push((own, vec![size])),
        }
    }
    let line = |(own, sizes): (&Beside, Vec<String>)| {
        let tolerance = own.tolerance.as_deref().unwrap_or("none");
        let verdict = own.verdict();
        format!("{} {verdict} at {}. Tolerated: {tolerance}.", own.counters, sizes.join(", "))
    };
    (!alike.is_empty()).then(|| Part::List(alike.into_iter().map(line).collect()))
}

fn columns(names: &[&str]) -> Vec<Head> {
    let names = names.iter().map(|name| match name.is_empty() {
        true => Head::left(""),
        false => Head::right(*name),
    });
    [Head::right("folio")].into_iter().chain(names).collect()
}

fn find<'b, 'a>(
    beside: &'b [Beside<'a>],
    of: &Compared,
    counters: &str,
    what: What,
) -> Option<&'b Beside<'a>> {
    let key = (of.folio_bytes, of.operation, counters, what);
    beside.iter().find(|own| (own.of.folio_bytes, own.of.operation, own.counters, own.what) == key)
}

fn percent(value: Option<f64>, digits: usize) -> String {
    match value {
        Some(0.0) => "0".to_string(),
        Some(value) => format!("{value:+.digits$}"),
        None => "-".to_string(),
    }
}

/// The verdict in a column: a dash where nothing is judged.
fn verdict(own: &Beside) -> String {
    own.ok.map_or("-", |_| own.verdict()).to_string()
}
