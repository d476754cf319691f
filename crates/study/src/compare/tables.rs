//! The tables of a comparison.
//!
//! Variants are columns and figures are rows, with each change beside its figure, or below it where
//! that is too wide. Where that is too wide as well, variants are rows.

use filemap_job::Spread;

use super::cell::{Cell, has_several_engines, name};
use crate::figures::{self, ELAPSED, FIGURES, Figure, MISSES_PER_DROP, ROUNDS_A_SECOND};
use crate::record::spreads;
use crate::stats::Sample;
use filemap_report::TEXT_COLUMNS;
use filemap_report::units::{change, number};
use filemap_report::{Head, Table};

/// Figures that stand beside each other where variants are rows, those first that matter most.
const OF_ROWS: [&str; 8] = [
    ROUNDS_A_SECOND,
    MISSES_PER_DROP,
    "read from device",
    "major faults",
    ELAPSED,
    "  of what was used",
    "evicted",
    "cached at the end",
];

/// The figures of `cells`.
pub(super) fn figures(cells: &[Cell]) -> Table {
    let samples: Vec<_> =
        cells.iter().map(|cell| figures::samples(&cell.record, cell.job.as_ref())).collect();
    let beside = beside(cells, &samples);
    if fits(&beside) {
        return beside;
    }
    let below = below(cells, &samples);
    if fits(&below) { below } else { variants_as_rows(cells, &samples) }
}

/// The figures of each cell, in the order of [`FIGURES`].
type Samples = Vec<Option<Sample>>;

fn fits(table: &Table) -> bool {
    table.text().lines().all(|line| line.chars().count() <= TEXT_COLUMNS)
}

/// The figures that have a row, with the name of the row and the figure of each cell.
fn shown<'a>(
    cells: &'a [Cell],
    samples: &'a [Samples],
) -> impl Iterator<Item = (&'static Figure, String, Vec<Option<f64>>)> + 'a {
    FIGURES.iter().enumerate().filter_map(move |(at, figure)| {
        let own: Vec<&Option<Sample>> = samples.iter().map(|samples| &samples[at]).collect();
        if !figures::is_shown(figure, own.iter().copied()) {
            return None;
        }
        let engines = cells.iter().map(|cell| cell.record.engine.as_str());
        let medians = own.iter().map(|sample| sample.as_ref().map(|sample| sample.median));
        Some((figure, figures::row_name(figure, engines), medians.collect()))
    })
}

fn text(figure: &Figure, value: Option<f64>) -> String {
    value.map_or("-".to_string(), |value| figure.unit.text(value))
}

fn change_of(values: &[Option<f64>], at: usize) -> String {
    let both = values[0].zip(values[at]);
    both.map_or("-".to_string(), |(first, own)| change(first, own))
}

/// Each change beside its figure.
fn beside(cells: &[Cell], samples: &[Samples]) -> Table {
    let mut columns = vec![Head::left("figure"), Head::right(heading(&cells[0], cells))];
    for cell in &cells[1..] {
        columns.extend([Head::right(heading(cell, cells)), Head::right("change")]);
    }
    let rows = shown(cells, samples).map(|(figure, name, values)| {
        let mut row = vec![name, text(figure, values[0])];
        for at in 1..values.len() {
            row.extend([text(figure, values[at]), change_of(&values, at)]);
        }
        row
    });
    Table { title: String::new(), columns, rows: rows.collect() }
}

/// Changes on a line of their own below each figure that changes.
fn below(cells: &[Cell], samples: &[Samples]) -> Table {
    let headings = cells.iter().map(|cell| Head::right(heading(cell, cells)));
    let columns = [Head::left("figure")].into_iter().chain(headings).collect();
    let mut rows = Vec::new();
    for (figure, name, values) in shown(cells, samples) {
        let own = values.iter().map(|value| text(figure, *value));
        rows.push([name].into_iter().chain(own).collect());
        let changes: Vec<String> = (1..values.len()).map(|at| change_of(&values, at)).collect();
        if changes.iter().any(|change| change != "=" && change != "-") {
            let empty = ["    change".to_string(), String::new()];
            rows.push(empty.into_iter().chain(changes).collect());
        }
    }
    Table { title: String::new(), columns, rows }
}

/// One row a variant: as many of [`OF_ROWS`] as there is room for, with their changes if these
/// fit too.
fn variants_as_rows(cells: &[Cell], samples: &[Samples]) -> Table {
    let mut table = Table {
        title: String::new(),
        columns: vec![Head::left("variant")],
        rows: cells.iter().map(|cell| vec![name(cell, cells)]).collect(),
    };
    let shown: Vec<_> = shown(cells, samples).collect();
    let of_rows = OF_ROWS.iter().filter_map(|name| shown.iter().find(|row| row.0.name == *name));
    for (position, (figure, name, values)) in of_rows.enumerate() {
        let with = |changes: bool| {
            let mut wider = table.clone();
            wider.columns.push(Head::right(name.trim().replace(' ', "\n")));
            wider.columns.extend(changes.then(|| Head::right("change")));
            for (at, row) in wider.rows.iter_mut().enumerate() {
                row.push(text(figure, values[at]));
                let change = if at == 0 { String::new() } else { change_of(values, at) };
                row.extend(changes.then_some(change));
            }
            wider
        };
        // However long the names are, the first two figures are wanted.
        let all = with(true);
        table = match () {
            () if position < 2 || fits(&all) => all,
            () if fits(&with(false)) => with(false),
            () => break,
        };
    }
    table
}

/// What stands above a cell's column.
pub(super) fn heading(cell: &Cell, cells: &[Cell]) -> String {
    match has_several_engines(cells) {
        true => format!("{}\n{}", cell.record.engine, folded(&cell.variant)),
        false => folded(&cell.variant),
    }
}

/// A name of several parts on several lines.
pub(super) fn folded(variant: &str) -> String {
    if variant.len() <= 12 {
        return variant.to_string();
    }
    variant.replace('+', "+\n").replace('=', "=\n")
}

/// Every counter under its own name: as many tables as it takes to keep to the width of a page,
/// each beginning with the first cell.
pub(super) fn counters(cells: &[Cell]) -> Vec<Table> {
    let (first, others) = cells.split_first().expect("there is a first cell");
    let table = |others: &[Cell]| {
        let of_table = [std::slice::from_ref(first), others].concat();
        counter_table(&of_table, cells)
    };
    let mut tables = Vec::new();
    let mut start = 0;
    while start < others.len() {
        let mut widest = table(&others[start..=start]);
        let mut end = start + 1;
        while end < others.len() {
            let wider = table(&others[start..=end]);
            if !fits(&wider) {
                break;
            }
            widest = wider;
            end += 1;
        }
        tables.push(widest);
        start = end;
    }
    tables
}

/// The counters of `of_table`, which are some of `cells`.
fn counter_table(of_table: &[Cell], cells: &[Cell]) -> Table {
    let headings = of_table.iter().map(|cell| Head::right(heading(cell, cells)));
    let columns = [Head::left("counter")].into_iter().chain(headings).collect();
    let spreads: Vec<Vec<(&str, Option<Spread>)>> =
        of_table.iter().map(|cell| spreads(&cell.record)).collect();
    let row = |at: usize| {
        let own: Vec<_> = spreads.iter().map(|spreads| spreads[at].1).collect();
        let name = spreads[0][at].0.to_string();
        let text = |own: &Option<Spread>| own.map_or("-".to_string(), |own| number(own.median));
        let seen = own.iter().any(Option::is_some);
        seen.then(|| [name].into_iter().chain(own.iter().map(text)).collect())
    };
    let rows = (0..spreads[0].len()).filter_map(row).collect();
    Table { title: String::new(), columns, rows }
}
