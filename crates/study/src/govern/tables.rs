//! Tables of what plain and governed runs cost.

use filemap_job::Spread;
use filemap_report::{Column, Table, Unit, Value, csv, table};

use super::measure::Cell;

/// What the medians show.
const MEDIANS: [Column<Cell>; 6] = [
    Column::of("", "", Unit::Text, |cell| cell.measure.name().into()),
    Column::of("", "plain", Unit::Count, |cell| shown(cell, cell.plain.median)),
    Column::of("", "governed", Unit::Count, |cell| shown(cell, cell.governed.median)),
    Column::of("", "plain /\ngoverned", Unit::Ratio, |cell| cell.ratio.into()),
    Column::of("", "p", Unit::Count, |cell| format!("{:.3}", cell.p_value).into()),
    Column::of("", "governed is", Unit::Text, |cell| cell.verdict.as_str().into()),
];

/// A cell, and one of its two kinds of runs.
type Row<'a> = (&'a Cell, &'static str, Spread);

/// How far runs lie apart.
const fn spread_columns<'a>() -> [Column<Row<'a>>; 5] {
    [
        Column::of("", "", Unit::Text, |(cell, variant, _)| {
            if *variant == PLAIN { cell.measure.name().into() } else { "".into() }
        }),
        Column::of("", "run", Unit::Text, |(_, variant, _)| (*variant).into()),
        Column::of("", "MAD", Unit::Count, |(cell, _, of)| shown(cell, of.mad)),
        Column::of("", "least", Unit::Count, |(cell, _, of)| shown(cell, of.min as f64)),
        Column::of("", "most", Unit::Count, |(cell, _, of)| shown(cell, of.max as f64)),
    ]
}

/// What CSV has.
const fn columns<'a>() -> [Column<Row<'a>>; 8] {
    [
        Column::of("measure", "", Unit::Text, |(cell, ..)| cell.measure.key().into()),
        Column::of("variant", "", Unit::Text, |(_, variant, _)| (*variant).into()),
        Column::of("median", "", Unit::Count, |(_, _, of)| of.median.into()),
        Column::of("mad", "", Unit::Count, |(_, _, of)| of.mad.into()),
        Column::of("min", "", Unit::Count, |(_, _, of)| of.min.into()),
        Column::of("max", "", Unit::Count, |(_, _, of)| of.max.into()),
        Column::of("p_value", "", Unit::Count, |(cell, ..)| cell.p_value.into()),
        Column::of("verdict", "", Unit::Text, |(cell, ..)| cell.verdict.as_str().into()),
    ]
}

const PLAIN: &str = "plain";

fn shown(cell: &Cell, value: f64) -> Value {
    cell.measure.unit().text(value).into()
}

fn by_variant(cells: &[Cell]) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for cell in cells {
        rows.extend([(cell, PLAIN, cell.plain), (cell, "governed", cell.governed)]);
    }
    rows
}

/// The medians of `cells`, and what they show.
pub fn medians(cells: &[Cell]) -> Table {
    table("", &MEDIANS, cells)
}

/// How far the runs of `cells` lie apart.
pub fn spreads(cells: &[Cell]) -> Table {
    table("Spread over the runs", &spread_columns(), &by_variant(cells))
}

/// One row for each measure and variant.
pub fn rows(cells: &[Cell]) -> Table {
    csv(&columns(), &by_variant(cells))
}
