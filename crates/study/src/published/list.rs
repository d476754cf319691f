//! Lists the series without running anything.

use filemap_report::{Footer, Head, Part, Report, Table};
use serde_json::json;

use super::data::Series;
use super::registry::KINDS;
use super::source::SeriesSource;
use crate::json::to_json;

/// Report on every series: purpose, status and versions, number of published figures.
pub fn list(command: String) -> Report {
    let all: Vec<(&str, usize, &SeriesSource)> = KINDS
        .iter()
        .filter_map(|kind| Some((kind.name, (kind.figures)(), &Series::find(kind.name)?.source)))
        .collect();
    let row = |(name, figures, source): &(&str, usize, &SeriesSource)| {
        vec![name.to_string(), figures.to_string(), source.status.clone()]
    };
    let columns = vec![Head::text("series"), Head::number("figures"), Head::text("status")];
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let table = Table { title: String::new(), columns, rows };
    let mut parts = vec![Part::Heading("Published series".to_string()), Part::Table(table.clone())];
    for (name, _, source) in &all {
        parts.push(Part::Paragraph(format!("{name}: {}.", source.does)));
        parts.push(source.versions_list());
    }
    let json: Vec<_> = all
        .iter()
        .map(|(name, figures, source)| json!({ "series": name, "figures": figures, "source": source }))
        .collect();
    let footer = Footer { command, ..Footer::default() };
    Report { parts, rows: table, footer, record_json: to_json(&json) }
}
