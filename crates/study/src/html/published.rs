//! The record of published tables beside the model's.

mod published_vs_model;

use filemap_report::Card;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::Error;
use crate::published::Source;
use filemap_report::units::number;
use filemap_report::{Head, Table};

use super::{Shown, read};
use filemap_report::Outcomes;

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
    let card = |name: &str, figure: String, more: &str| Card::new(name, figure, more);
    let cards = [
        card("cells that hold", format!("{held} of {judged}"), "of those that are judged"),
        card("published figures", beside.to_string(), "beside the model's"),
        card("series", series.len().to_string(), ""),
    ];
    // Sources have no name of their series; they come in the same order.
    let is_whole = sources.len() == series.len();
    let body = html! {
        (filemap_report::html::cards(&cards))
        p {
            "A ring is the published figure and a dot the one that came out here, with a line from "
            "its least to its most over seeds or repeats. Each table has one scale; it is "
            "logarithmic where figures lie far apart."
        }
        @for (at, name) in series.iter().enumerate() {
            @let own: Vec<&Cell> = cells.iter().filter(|cell| cell.series == *name).collect();
            @match sources.get(at).filter(|_| is_whole) {
                Some(source) => (filemap_report::html::all(&source.parts())),
                None => h2 { (name) },
            }
            (of_series(&own))
        }
        @if !is_whole {
            @for source in &sources { (filemap_report::html::all(&source.parts())) }
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
            (published_vs_model::beside(title, cells))
            @if let Some(spread) = filemap_report::spread(&several_outcomes(cells), "seed") { (spread.markup()) }
        }
        @if !others.is_empty() {
            details {
                summary { (others.len()) " results without a published figure" }
                (filemap_report::html::table(&listed(&others)))
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

/// Cells without a published figure, each with its figures as they are.
fn listed(cells: &[&Cell]) -> Table {
    let row = |cell: &&Cell| {
        let names: Vec<String> = cell.names().into_iter().map(|(_, text)| text).collect();
        vec![names.join(", "), flat(&cell.figures, 0), cell.verdict.clone()]
    };
    let columns = ["what", "figures", "verdict"].map(Head::left).to_vec();
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
