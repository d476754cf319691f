//! What plain and governed runs cost, side by side.

use filemap_job::Spread;
use filemap_report::units::{bytes_range, time_range};
use filemap_report::{
    Column, ComparedTable, Figure, Sample, Table, Unit, Value, csv, figures, folded, raw, table,
    words,
};

use super::measure::Cell;

/// Most columns of a verdict: the table is to fit into those of text.
const VERDICT_COLUMNS: usize = 13;

/// What the runs show, and how far they lie apart.
const JUDGED: [Column<Cell>; 5] = [
    words("", |cell| cell.measure.name().into()),
    words("governed is", |cell| folded(&cell.verdict, VERDICT_COLUMNS).into()),
    figures("p", |cell| format!("{:.3}", cell.p_value).into()),
    figures("plain,\nleast to most", |cell| range(cell, cell.plain)),
    figures("governed,\nleast to most", |cell| range(cell, cell.governed)),
];

/// A cell, and one of its two kinds of runs.
type Row<'a> = (&'a Cell, &'static str, Spread);

/// What CSV has.
const fn columns<'a>() -> [Column<Row<'a>>; 8] {
    [
        raw("measure", |(cell, ..)| cell.measure.key().into()),
        raw("variant", |(_, variant, _)| (*variant).into()),
        raw("median", |(_, _, of)| of.median.into()),
        raw("mad", |(_, _, of)| of.mad.into()),
        raw("min", |(_, _, of)| of.min.into()),
        raw("max", |(_, _, of)| of.max.into()),
        raw("p_value", |(cell, ..)| cell.p_value.into()),
        raw("verdict", |(cell, ..)| cell.verdict.as_str().into()),
    ]
}

const NAMES: [&str; 2] = ["plain", "governed"];

fn range(cell: &Cell, Spread { min, max, .. }: Spread) -> Value {
    let (min, max) = (min as f64, max as f64);
    Value::from(match cell.measure.unit() {
        Unit::Bytes => bytes_range(min, max),
        Unit::Nanoseconds => time_range(min, max),
        unit => format!("{} to {}", unit.text(min), unit.text(max)),
    })
}

/// The medians of `cells`.
pub fn compared(cells: &[Cell]) -> ComparedTable {
    let sample = |Spread { median, min, max, .. }: Spread| {
        Some(Sample { median, min: min as f64, max: max as f64, mark: "" })
    };
    let figure = |(at, cell): (usize, &Cell)| Figure {
        name: cell.measure.name().to_string(),
        unit: cell.measure.unit(),
        rank: Some(at),
        samples: [cell.plain, cell.governed].map(sample).to_vec(),
    };
    let variant =
        |name: &str| filemap_report::Variant { name: name.to_string(), ..Default::default() };
    let variants = NAMES.map(variant).to_vec();
    ComparedTable { variants, figures: cells.iter().enumerate().map(figure).collect() }
}

/// What the runs of `cells` show.
pub fn judged(cells: &[Cell]) -> Table {
    table("", &JUDGED, cells)
}

/// One row for each measure and variant.
pub fn rows(cells: &[Cell]) -> Table {
    let mut rows: Vec<Row> = Vec::new();
    for cell in cells {
        rows.extend([(cell, NAMES[0], cell.plain), (cell, NAMES[1], cell.governed)]);
    }
    csv(&columns(), &rows)
}
