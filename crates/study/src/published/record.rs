//! Record and report of published tables.

use filemap_job::Record;
use filemap_job::record::{RecordKind, SCHEMA};
use filemap_report::{Part, Report, Table};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cell::{Cell, FAILS, OFF};
use super::data::Series;
use super::page;
use super::registry::KINDS;
use super::source::SeriesSource;
use super::study::SeriesFindings;
use super::summary::{self, CellSummary};
use crate::footer::{Footer, Origin};
use crate::json::to_json;

/// Title of a report on several series.
const TITLE: &str = "Published figures beside the model's";

/// The record of published tables.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PublishedRecord {
    schema: u32,
    /// What the record is of.
    kind: RecordKind,
    #[serde(flatten)]
    footer: Footer,
    /// One for each series.
    #[serde(default)]
    summary: Vec<CellSummary>,
    /// One for each series.
    sources: Vec<SeriesSource>,
    /// Cells grouped by series, in the order of `sources`.
    cells: Vec<Cell>,
}

impl PublishedRecord {
    /// Joins the results of all series; `records` are the runs behind them.
    pub fn new(found: Vec<SeriesFindings>, records: &[Record], command: String) -> Self {
        let own = found.iter().filter_map(|(_, origin)| origin.clone());
        let origins: Vec<Origin> = records.iter().map(Origin::from_record).chain(own).collect();
        let series = found.iter().filter_map(|(cells, _)| Series::find(&cells.first()?.series));
        let sources = series.map(|series| series.source.clone()).collect();
        let summary = found.iter().map(|(cells, _)| CellSummary::from_cells(cells)).collect();
        PublishedRecord {
            schema: SCHEMA,
            kind: RecordKind::Published,
            footer: Footer::from_origins(&origins, command),
            summary,
            sources,
            cells: found.into_iter().flat_map(|(cells, _)| cells).collect(),
        }
    }

    /// Number of judged cells that do not hold.
    pub fn failed(&self) -> usize {
        self.cells.iter().filter(|cell| cell.verdict == FAILS).count()
    }

    /// The report.
    pub fn report(&self) -> Report {
        let all: Vec<&[Cell]> =
            self.cells.chunk_by(|one, other| one.series == other.series).collect();
        // Sources do not name their series; they are in the same order.
        let is_whole = self.sources.len() == all.len();
        let (mut parts, mut rows) = (Vec::new(), Table::default());
        if all.len() != 1 {
            parts.push(Part::Heading(TITLE.to_string()));
            parts.extend(summary::summary_parts(&all));
        }
        for (at, cells) in all.iter().enumerate() {
            let name = cells[0].series.as_str();
            let source = self.sources.get(at).filter(|_| is_whole);
            let title = source.map_or(name, |source| source.title.as_str());
            parts.push(Part::Heading(title.to_string()));
            parts.push(Part::Paragraph(CellSummary::from_cells(cells).sentences()));
            parts.extend(source.into_iter().flat_map(SeriesSource::parts));
            parts.extend(page::pictures(cells));
            let kind = KINDS.iter().find(|kind| kind.name == name);
            if let Some((kind, series)) = kind.zip(Series::find(name)) {
                let json: Vec<Value> = cells.iter().map(|cell| json!(cell)).collect();
                parts.extend(series.parts(&json, &(kind.notes)(series, cells)));
                series.csv.iter().for_each(|shown| rows.join(shown.csv(&json)));
            }
            parts.extend(misses(cells));
        }
        if !is_whole {
            parts.extend(self.sources.iter().flat_map(SeriesSource::parts));
        }
        let report =
            Report { parts, rows, footer: self.footer.footer(), record_json: to_json(self) };
        report.with_facts(page::cards(&self.cells))
    }
}

/// Tolerances of the cells that do not hold; `None` if all hold.
fn misses(cells: &[Cell]) -> Option<Part> {
    let line = |cell: &Cell| {
        let tolerance = cell.tolerance.as_deref().unwrap_or("nothing");
        let figure =
            |figure: Option<f64>| figure.map_or("-".to_string(), |value| format!("{value:.3}"));
        let names: Vec<String> = cell.sizes().chain([cell.joined_names()]).collect();
        format!(
            "{}: {}. Published: {}, here: {} {}. Tolerated: {tolerance}.",
            names.join(", "),
            cell.verdict,
            figure(cell.published),
            figure(cell.model()),
            cell.unit.as_deref().unwrap_or_default(),
        )
    };
    let missed: Vec<String> = cells
        .iter()
        .filter(|cell| [FAILS, OFF].contains(&cell.verdict.as_str()))
        .map(line)
        .collect();
    (!missed.is_empty()).then_some(Part::List(missed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_cells_have_names_and_figures() {
        let cell = |file_gib: u64, figure: &str| Cell {
            file_gib: Some(file_gib),
            ram_gib: Some(8),
            workload: Some("random".to_string()),
            unit: Some("GiB read".to_string()),
            published: Some(3.987),
            tolerance: Some("within 1 %".to_string()),
            ..Cell::new("mmap-miss", json!({ figure: 4.25 })).with_judgement(Some(false), "")
        };
        let held = cell(1, "gib").with_judgement(Some(true), "");
        let text = "fail. Published: 3.987, here: 4.250 GiB read. Tolerated: within 1 %.";
        let list = [20, 4].map(|gib| format!("{gib} GiB file, 8 GiB RAM, random: {text}"));
        let cells = [cell(20, "gib"), cell(4, "median"), held];
        let Some(Part::List(missed)) = misses(&cells) else { panic!("two are missed") };
        assert_eq!(missed, list);
        assert!(misses(&cells[2..]).is_none());
    }
}
