//! The record of published tables beside the model's.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::canvas::{Axis, tick_text, ticks};
use crate::error::Error;
use crate::published::Source;
use crate::table::{Column, Table};
use crate::units::number;

use super::plot::round;
use super::spread::{self, Outcomes};
use super::{Shown, parts, read};

#[derive(Deserialize)]
struct Published {
    #[serde(default)]
    sources: Vec<Source>,
    cells: Vec<Cell>,
}

#[derive(Clone, Deserialize)]
struct Cell {
    series: String,
    published: Option<f64>,
    figures: Map<String, Value>,
    error: Option<f64>,
    ok: Option<bool>,
    verdict: String,
    #[serde(default)]
    unit: Option<String>,
    #[serde(default)]
    error_unit: Option<String>,
    #[serde(default)]
    tolerance: Option<String>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// What names a cell, in this order.
const NAMES: [&str; 9] = [
    "experiment",
    "name",
    "workload",
    "phase",
    "folio_kib",
    "advice",
    "read_ahead_kb",
    "variant",
    "touched_pages",
];

/// What names a table of cells.
const TABLES: [(&str, &str); 2] = [("file_gib", "GiB file"), ("ram_gib", "GiB RAM")];

/// Where the figure of the model is.
const MODEL: [&str; 4] = ["gib", "ratio", "median", "cached_outside"];

/// Where its spread is.
const SPREADS: [&str; 3] = ["distribution", "gib", "change"];

/// Cells without a published figure that are listed of one series; JSON has all.
const MOST_LISTED: usize = 300;

impl Cell {
    fn model(&self) -> Option<f64> {
        MODEL.iter().find_map(|key| self.figures.get(*key)?.as_f64())
    }

    /// The least and the most over seeds.
    fn spread(&self) -> Option<(f64, f64)> {
        let of = |key: &&str| {
            let sample = self.figures.get(*key)?;
            // Times are told as a change in percent.
            let sample = sample.get("percent").unwrap_or(sample);
            Some((sample.get("min")?.as_f64()?, sample.get("max")?.as_f64()?))
        };
        SPREADS.iter().find_map(of).filter(|(least, most)| least < most)
    }

    fn names(&self) -> Vec<(&'static str, String)> {
        let text = |key: &'static str| {
            let value = self.more.get(key)?;
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
            Some((key, text))
        };
        NAMES.into_iter().filter_map(text).collect()
    }

    fn table(&self) -> String {
        let named = TABLES.iter().filter_map(|(key, name)| {
            Some(format!("{} {name}", number(self.more.get(*key)?.as_f64()?)))
        });
        let unit = self.unit.clone().into_iter();
        named.chain(unit).collect::<Vec<_>>().join(", ")
    }

    /// Whether it stands beside a published figure, or in a table of such cells.
    fn is_beside(&self) -> bool {
        self.unit.is_some() && (self.model().is_some() || self.published.is_some())
    }
}

/// The page of such a record.
pub(super) fn page(json: &str) -> Result<Shown, Error> {
    let Published { sources, cells } = read(json)?;
    let judged = cells.iter().filter(|cell| cell.ok.is_some()).count();
    let held = cells.iter().filter(|cell| cell.ok == Some(true)).count();
    let beside = cells.iter().filter(|cell| cell.published.is_some()).count();
    let mut series: Vec<&str> = Vec::new();
    for cell in &cells {
        if !series.contains(&cell.series.as_str()) {
            series.push(&cell.series);
        }
    }
    let card =
        |name: &str, figure: String, more: &str| (name.to_string(), figure, more.to_string());
    let cards = [
        card("cells that hold", format!("{held} of {judged}"), "of those that are judged"),
        card("published figures", beside.to_string(), "beside the model's"),
        card("series", series.len().to_string(), ""),
    ];
    // Sources have no name of their series; they come in the same order.
    let is_whole = sources.len() == series.len();
    let body = html! {
        (parts::cards(&cards))
        p {
            "A ring is the published figure and a dot the one that came out here, with a line from "
            "its least to its most over seeds or repeats. Each table has one scale; it is "
            "logarithmic where figures lie far apart."
        }
        @for (at, name) in series.iter().enumerate() {
            @let own: Vec<&Cell> = cells.iter().filter(|cell| cell.series == *name).collect();
            @match sources.get(at).filter(|_| is_whole) {
                Some(source) => (parts::all(&source.parts())),
                None => h2 { (name) },
            }
            (of_series(&own))
        }
        @if !is_whole {
            @for source in &sources { (parts::all(&source.parts())) }
        }
    };
    Ok(Shown { title: "Published figures beside the model's".to_string(), body })
}

fn of_series(cells: &[&Cell]) -> Markup {
    let mut tables: Vec<(String, Vec<&Cell>)> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.is_beside()) {
        let title = cell.table();
        match tables.iter_mut().find(|(known, _)| *known == title) {
            Some((_, own)) => own.push(cell),
            None => tables.push((title, vec![cell])),
        }
    }
    let others: Vec<&Cell> = cells.iter().copied().filter(|cell| !cell.is_beside()).collect();
    html! {
        @for (title, cells) in &tables {
            (beside(title, cells))
            @if let Some(spread) = spread::picture(&several_outcomes(cells), "seed") { (spread) }
        }
        @if !others.is_empty() {
            details {
                summary { (others.len()) " results without a published figure" }
                (parts::table(&listed(&others)))
                @if others.len() > MOST_LISTED {
                    p { "and " (others.len() - MOST_LISTED) " more, in JSON." }
                }
            }
        }
    }
}

/// The seeds of the cells that have several outcomes, in bytes.
fn several_outcomes(cells: &[&Cell]) -> Vec<Outcomes> {
    let of = |cell: &&Cell| {
        let distribution = cell.figures.get("distribution")?;
        let modes = distribution.get("modes")?.as_array()?.len();
        let is_gib = cell.unit.as_deref().is_some_and(|unit| unit.starts_with("GiB"));
        let samples = distribution.get("samples")?.as_array().filter(|_| modes > 1 && is_gib)?;
        let samples = samples
            .iter()
            .enumerate()
            .filter_map(|(at, sample)| Some((format!("seed {}", at + 1), sample.as_f64()? * GIB)));
        let names: Vec<String> = cell.names().into_iter().map(|(_, text)| text).collect();
        Some(Outcomes { name: names.join(", "), runs: samples.collect() })
    };
    cells.iter().filter_map(of).collect()
}

const GIB: f64 = (1u64 << 30) as f64;

/// Width and height of the plot in a row, and its margin at both sides.
const PLOT: (f64, f64) = (260.0, 22.0);
const MARGIN: f64 = 8.0;

/// The scale of a table.
struct Scale {
    axis: Axis,
    is_logarithmic: bool,
}

impl Scale {
    fn of(cells: &[&Cell]) -> Scale {
        let values = cells.iter().flat_map(|cell| {
            let spread = cell.spread().map(|(least, most)| [Some(least), Some(most)]);
            [cell.published, cell.model()].into_iter().chain(spread.into_iter().flatten()).flatten()
        });
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let least = values.iter().copied().fold(f64::MAX, f64::min).min(1e300);
        let most = values.iter().copied().fold(f64::MIN, f64::max).max(least);
        let is_logarithmic = least > 0.0 && most / least > 30.0;
        let (first, last) = match is_logarithmic {
            true => (least.log10().floor(), most.log10().ceil()),
            false => (least.min(0.0), most.max(0.0)),
        };
        let last = if last > first { last } else { first + 1.0 };
        let axis = Axis { left: MARGIN, width: PLOT.0 - 2.0 * MARGIN, first, last };
        Scale { axis, is_logarithmic }
    }

    fn at(&self, value: f64) -> f64 {
        self.axis.at(if self.is_logarithmic { value.log10() } else { value })
    }

    /// Places with their texts.
    fn marks(&self) -> Vec<(f64, String)> {
        let Axis { first, last, .. } = self.axis;
        if !self.is_logarithmic {
            let marks = ticks(first, last, 3.0, 1e-3).into_iter();
            return marks.map(|value| (self.at(value), tick_text(value))).collect();
        }
        let powers = ((last - first) / 4.0).ceil().max(1.0);
        let count = ((last - first) / powers).floor() as usize;
        let power = |step: usize| first + step as f64 * powers;
        let marks = (0..=count).map(power);
        marks.map(|power| (self.axis.at(power), figure(10f64.powf(power)))).collect()
    }
}

/// A figure in four digits.
fn figure(value: f64) -> String {
    let text = match value.abs() {
        0.0 => "0".to_string(),
        large if large >= 10_000.0 => number(value.round()),
        large if large >= 1000.0 => format!("{value:.0}"),
        large if large >= 100.0 => format!("{value:.1}"),
        large if large >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

fn beside(title: &str, cells: &[&Cell]) -> Markup {
    let scale = Scale::of(cells);
    let mut heads: Vec<&'static str> = Vec::new();
    for (key, _) in cells.iter().flat_map(|cell| cell.names()) {
        if !heads.contains(&key) {
            heads.push(key);
        }
    }
    heads.sort_by_key(|key| NAMES.iter().position(|known| known == key));
    let view = format!("0 0 {} {}", PLOT.0, PLOT.1);
    html! {
        div.scroll tabindex="0" role="group" aria-label=(title) {
            table.beside {
                caption { (title) }
                thead {
                    tr {
                        @for head in &heads { th scope="col" { (head.replace('_', " ")) } }
                        th.n scope="col" { "published" }
                        th.n scope="col" { "here" }
                        th scope="col" {
                            span.unseen { "as a picture" }
                            svg viewBox=(view) aria-hidden="true" {
                                @for (x, text) in scale.marks() {
                                    @let x = round(x.clamp(18.0, PLOT.0 - 18.0));
                                    text.tick.middle x=(x) y="18" { (text) }
                                }
                            }
                        }
                        th.n scope="col" { "error" }
                        th scope="col" { "verdict" }
                    }
                }
                tbody { @for cell in cells { (row(cell, &heads, &scale, &view)) } }
            }
        }
    }
}

fn row(cell: &Cell, heads: &[&'static str], scale: &Scale, view: &str) -> Markup {
    let names = cell.names();
    let name = |head: &&'static str| {
        names.iter().find(|(key, _)| key == head).map_or("", |(_, text)| text.as_str())
    };
    let text = |value: Option<f64>| value.map_or("-".to_string(), figure);
    let unit = cell.error_unit.as_deref().unwrap_or_default();
    let unit = if unit == "%" { " %" } else { "" };
    let error = cell.error.map_or("-".to_string(), |error| format!("{error:+.2}{unit}"));
    let class = match cell.ok {
        Some(true) => Some("good"),
        Some(false) => Some("bad"),
        None => None,
    };
    let told = told(cell);
    html! {
        tr {
            @for head in heads { td { (name(head)) } }
            td.n { (text(cell.published)) }
            td.n { (text(cell.model())) }
            td.plot { (drawn(cell, scale, view, &told)) }
            td.n { (error) }
            td class=[class] title=[cell.tolerance.as_deref()] { (cell.verdict) }
        }
    }
}

fn told(cell: &Cell) -> String {
    let mut words = Vec::new();
    words.extend(cell.published.map(|value| format!("published {}", figure(value))));
    words.extend(cell.model().map(|value| format!("here {}", figure(value))));
    words.extend(
        cell.spread().map(|(least, most)| format!("from {} to {}", figure(least), figure(most))),
    );
    words.extend(cell.tolerance.as_ref().map(|tolerance| format!("tolerated {tolerance}")));
    words.join("; ")
}

fn drawn(cell: &Cell, scale: &Scale, view: &str, told: &str) -> Markup {
    let middle = PLOT.1 / 2.0;
    let place = |value: f64| round(scale.at(value));
    html! {
        svg viewBox=(view) role="img" aria-label=(told) {
            @for (x, _) in scale.marks() {
                path.grid d=(format!("M{} 0v{}", round(x), PLOT.1)) {}
            }
            @if let Some((least, most)) = cell.spread() {
                path.range d=(format!("M{} {middle}H{}", place(least), place(most))) {}
            }
            @if let Some(published) = cell.published {
                circle.published cx=(place(published)) cy=(middle) r="6" {}
            }
            @if let Some(model) = cell.model() {
                circle.model cx=(place(model)) cy=(middle) r="3.2" {}
            }
            rect.hit width=(PLOT.0) height=(PLOT.1) data-t=(told) {}
        }
    }
}

/// Cells without a published figure, each with its figures as they are.
fn listed(cells: &[&Cell]) -> Table {
    let row = |cell: &&Cell| {
        let names: Vec<String> = cell.names().into_iter().map(|(_, text)| text).collect();
        vec![names.join(", "), flat(&cell.figures, 0), cell.verdict.clone()]
    };
    let columns = ["what", "figures", "verdict"].map(Column::left).to_vec();
    let rows = cells.iter().take(MOST_LISTED).map(row).collect();
    Table { title: String::new(), columns, rows }
}

/// Figures in one line, without lists.
fn flat(figures: &Map<String, Value>, depth: usize) -> String {
    let text = |(key, value): (&String, &Value)| match value {
        Value::Number(value) => Some(format!("{key} {}", figure(value.as_f64()?))),
        Value::String(text) => Some(format!("{key} {text}")),
        Value::Object(map) if depth < 2 => Some(format!("{key} ({})", flat(map, depth + 1))),
        _ => None,
    };
    figures.iter().filter_map(text).collect::<Vec<_>>().join(", ")
}
