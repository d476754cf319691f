//! Pictures of cells on a page: published (ring) and model (dot) on one scale, spread over seeds.

use filemap_report::units::figure;
use filemap_report::{
    Card, DotCell, DotColumn, DotTable, Head, Mark, Part, Scale, SpreadRow, Unit,
};

use super::cell::Cell;
use super::cell_table::signed;
use crate::stats::SampleStats;

/// Paths of the model's figure, tried in order.
const MODEL: [&str; 4] = ["gib", "ratio", "median", "cached_outside"];

/// Paths of its spread. Times are shown as a change in percent.
const SPREADS: [&str; 3] = ["distribution", "gib", "change/percent"];

const GIB: f64 = (1u64 << 30) as f64;

/// Number of cells that hold, and how to read the pictures.
pub fn cards(cells: &[Cell]) -> Part {
    let judged = cells.iter().filter(|cell| cell.ok.is_some()).count();
    let held = cells.iter().filter(|cell| cell.ok == Some(true)).count();
    let beside = cells.iter().filter(|cell| cell.published.is_some()).count();
    let series = cells.chunk_by(|one, other| one.series == other.series).count();
    Part::Cards(vec![
        Card::new("cells that hold", format!("{held} of {judged}"), "of those that are judged"),
        Card::new("published figures", beside.to_string(), "beside the model's"),
        Card::new("series", series.to_string(), ""),
    ])
}

/// Pictures of one series: a dot plot for each unit, and the spread over seeds.
pub fn pictures(cells: &[Cell]) -> Vec<Part> {
    let mut tables: Vec<(String, Vec<&Cell>)> = Vec::new();
    let is_drawn = |cell: &&Cell| cell.model().is_some() || cell.published.is_some();
    for cell in cells.iter().filter(|cell| cell.unit.is_some()).filter(is_drawn) {
        let title = cell.table();
        match tables.iter_mut().find(|(known, _)| *known == title) {
            Some((_, own)) => own.push(cell),
            None => tables.push((title, vec![cell])),
        }
    }
    let mut parts = Vec::new();
    for (title, cells) in tables {
        let spread = filemap_report::spread_plot(&several_outcomes(&cells), "seed");
        parts.push(Part::Dots(dots(title, &cells, parts.is_empty())));
        parts.extend(spread.map(Part::Plot));
    }
    parts
}

impl Cell {
    /// The model's figure.
    pub(super) fn model(&self) -> Option<f64> {
        MODEL.iter().find_map(|key| self.number(key))
    }

    /// Minimum and maximum over seeds.
    fn spread(&self) -> Option<(f64, f64)> {
        let bound = |key: &str, which: &str| self.number(&format!("{key}/{which}"));
        let bounds = |key: &&str| Some((bound(key, "min")?, bound(key, "max")?));
        SPREADS.iter().find_map(bounds).filter(|(least, most)| least < most)
    }

    /// Sizes in the name of its table.
    pub(super) fn sizes(&self) -> impl Iterator<Item = String> {
        let sizes = [(self.file_gib, "file"), (self.ram_gib, "RAM")].into_iter();
        sizes.filter_map(|(gib, text)| Some(format!("{} GiB {text}", gib?)))
    }

    /// Name of its table.
    fn table(&self) -> String {
        self.sizes().chain(self.unit.clone()).collect::<Vec<_>>().join(", ")
    }

    fn table_title(&self) -> String {
        let named = |name: &str, value: Option<f64>| Some(format!("{name} {}", figure(value?)));
        let spread = self.spread();
        let range = |(least, most)| format!("from {} to {}", figure(least), figure(most));
        let tolerated = self.tolerance.as_ref().map(|own| format!("tolerated {own}"));
        let words = [
            named("published", self.published),
            named("here", self.model()),
            spread.map(range),
            tolerated,
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

/// Dot plot of `cells` in one unit.
fn dots(title: String, cells: &[&Cell], is_first: bool) -> DotTable {
    let values = cells.iter().flat_map(|cell| {
        let (least, most) = cell.spread().unzip();
        [cell.published, cell.model(), least, most].into_iter().flatten()
    });
    let scale = Scale::from_values("", Unit::Count, values);
    let mut heads: Vec<&'static str> = Vec::new();
    for (key, _) in cells.iter().flat_map(|cell| cell.names()) {
        if !heads.contains(&key) {
            heads.push(key);
        }
    }
    let mut columns: Vec<DotColumn> =
        heads.iter().map(|head| DotColumn::Text(Head::text(*head))).collect();
    columns.extend(["published", "here"].map(|head| DotColumn::Text(Head::number(head))));
    columns.push(DotColumn::Drawn(scale));
    columns.extend([Head::number("error"), Head::text("verdict")].map(DotColumn::Text));
    let note = if is_first {
        "A ring is the published figure and a dot the one found here, with a line from its minimum \
         to its maximum over seeds or repeats. Each table has one scale; it is logarithmic where \
         figures lie far apart."
    } else {
        ""
    };
    let rows = cells.iter().map(|cell| row(cell, &heads)).collect();
    DotTable { title, note: note.to_string(), legend: Vec::new(), columns, rows }
}

fn row(cell: &Cell, heads: &[&'static str]) -> Vec<DotCell> {
    let names = cell.names();
    let name = |head: &&'static str| {
        let found = names.iter().find(|(key, _)| key == head);
        DotCell::Text(found.map_or(String::new(), |(_, text)| text.clone()))
    };
    let text = |value: Option<f64>| DotCell::Text(value.map_or("-".to_string(), figure));
    let marks = [
        cell.spread().map(|(least, most)| Mark::Range(least, most, "u4")),
        cell.published.map(Mark::Ring),
        cell.model().map(|model| Mark::Dot(model, "u4")),
    ];
    let unit = if cell.error_unit.as_deref() == Some("%") { " %" } else { "" };
    let error = cell.error.map_or("-".to_string(), |error| signed(error, 2) + unit);
    let mut row: Vec<DotCell> = heads.iter().map(name).collect();
    row.extend([text(cell.published), text(cell.model())]);
    row.push(DotCell::Drawn {
        marks: marks.into_iter().flatten().collect(),
        description: cell.table_title(),
    });
    row.push(DotCell::Text(error));
    row.push(DotCell::Verdict {
        text: cell.verdict.clone(),
        class: cell.ok.map(|ok| if ok { "good" } else { "bad" }),
        more: cell.tolerance.clone(),
    });
    row
}

/// Bytes by seed of the cells with several outcomes.
fn several_outcomes(cells: &[&Cell]) -> Vec<SpreadRow> {
    let spread_row = |cell: &&Cell| {
        let sample =
            cell.read::<SampleStats>("distribution").filter(|sample| sample.modes.len() > 1)?;
        let is_gib = cell.unit.as_deref().is_some_and(|unit| unit.starts_with("GiB"));
        let runs = sample.samples.into_iter().enumerate();
        let runs = runs.map(|(at, gib)| (format!("seed {}", at + 1), gib * GIB)).collect();
        is_gib.then(|| SpreadRow { name: cell.joined_names(), runs })
    };
    cells.iter().filter_map(spread_row).collect()
}
