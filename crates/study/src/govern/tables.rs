//! Tables of what plain and governed runs cost.

use filemap_job::Spread;

use super::measure::Cell;
use filemap_report::{Head, Table};

/// The medians of `cells`, and what they show.
pub fn medians(cells: &[Cell]) -> Table {
    let row = |cell: &Cell| {
        vec![
            cell.measure.to_string(),
            (cell.text)(cell.plain.median),
            (cell.text)(cell.governed.median),
            cell.ratio.map_or("-".to_string(), |ratio| format!("{ratio:.2}")),
            format!("{:.3}", cell.p_value),
            cell.verdict.to_string(),
        ]
    };
    let right = ["plain", "governed", "plain /\ngoverned", "p"].map(Head::right);
    let columns = [Head::left("")].into_iter().chain(right).chain([Head::left("governed is")]);
    Table {
        title: String::new(),
        columns: columns.collect(),
        rows: cells.iter().map(row).collect(),
    }
}

/// How far the runs of `cells` lie apart.
pub fn spreads(cells: &[Cell]) -> Table {
    let rows = |cell: &Cell| {
        let of = |name: &str, variant: &str, spread: &Spread| {
            let least = (cell.text)(spread.min as f64);
            let most = (cell.text)(spread.max as f64);
            vec![name.to_string(), variant.to_string(), (cell.text)(spread.mad), least, most]
        };
        [of(cell.measure, "plain", &cell.plain), of("", "governed", &cell.governed)]
    };
    let right = ["MAD", "least", "most"].map(Head::right);
    Table {
        title: "Spread over the runs".to_string(),
        columns: ["", "run"].map(Head::left).into_iter().chain(right).collect(),
        rows: cells.iter().flat_map(rows).collect(),
    }
}

/// One row for each measure and variant.
pub fn rows(cells: &[Cell]) -> Table {
    let names = ["measure", "variant", "median", "mad", "min", "max", "p_value", "verdict"];
    let of = |cell: &Cell| {
        [("plain", cell.plain), ("governed", cell.governed)].map(|(variant, spread)| {
            let Spread { median, mad, min, max } = spread;
            let mut row = vec![cell.key.to_string(), variant.to_string()];
            row.extend([median.to_string(), mad.to_string(), min.to_string(), max.to_string()]);
            row.extend([cell.p_value.to_string(), cell.verdict.to_string()]);
            row
        })
    };
    Table {
        title: String::new(),
        columns: names.into_iter().map(Head::left).collect(),
        rows: cells.iter().flat_map(of).collect(),
    }
}
