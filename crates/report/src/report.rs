//! Reports: their parts and formats.

use std::str::FromStr;

use maud::Markup;
use serde_json::{Map, Value};

use crate::bars::BarTable;
use crate::comparison::ComparisonTable;
use crate::dots::DotTable;
use crate::plot::Plot;
use crate::table::Table;

/// The output format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text as in the cover letter of a kernel patch, [`crate::TEXT_COLUMNS`] wide.
    #[default]
    Table,
    /// Markdown.
    Markdown,
    /// CSV: one header line, one line for each result, and nothing else: scope, command and
    /// environment are in the other formats.
    Csv,
    /// JSON: one object.
    Json,
}

impl Format {
    /// Every format with its name.
    pub const ALL: [(&'static str, Format); 4] = [
        ("table", Format::Table),
        ("markdown", Format::Markdown),
        ("csv", Format::Csv),
        ("json", Format::Json),
    ];
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Format::ALL.into_iter().find(|(name, _)| *name == text);
        let names = Format::ALL.map(|(name, _)| name).join(", ");
        known.map(|(_, format)| format).ok_or(format!("give one of {names}"))
    }
}

/// A report.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Report {
    /// Its parts, in the order of text, Markdown and letters. A page shows pictures first in each
    /// section.
    pub parts: Vec<Part>,
    /// Its results as a flat table, for CSV.
    pub rows: Table,
    pub footer: Footer,
    /// The record that it is made from, as a JSON object.
    pub record_json: String,
}

/// A part of a report. Sentences include their punctuation.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Part {
    /// Starts a section; the first one is the title.
    Heading(String),
    /// The answer in a sentence or two.
    Lead(String),
    /// Labels with values.
    Facts(Vec<(String, String)>),
    List(Vec<String>),
    Paragraph(String),
    /// What a reader must not miss.
    Warning(String),
    Table(Table),
    /// A table in text and Markdown, also bars in a page, and with ranges in a letter.
    Comparison(ComparisonTable),
    /// Lines that are not wrapped.
    Preformatted(String),
    /// The most important figures. Like the variants below only in pages; tables have the same
    /// figures.
    Cards(Vec<Card>),
    Bars(BarTable),
    Dots(DotTable),
    Plot(Plot),
    Drawn(Markup),
    /// A section of a page that opens on request.
    Details(Details),
}

/// A figure shown large.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Card {
    pub name: String,
    pub figure: String,
    /// An addition in small print.
    pub more: String,
}

/// Parts below a summary.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Details {
    pub summary: String,
    pub parts: Vec<Part>,
}

/// Facts about a report itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Footer {
    /// Labels with values.
    pub facts: Vec<(String, String)>,
    /// The shell command that repeats it.
    pub command: String,
    /// The program that wrote it, and when.
    pub origin: String,
    /// The environment of the measurement.
    pub environment: Map<String, Value>,
}

impl Card {
    /// A figure with its name and an addition.
    pub fn new(name: impl Into<String>, figure: String, more: impl Into<String>) -> Self {
        Card { name: name.into(), figure, more: more.into() }
    }
}

impl Part {
    /// Warnings, from sentences without a full stop.
    pub fn warnings(sentences: &[String]) -> impl Iterator<Item = Part> {
        sentences.iter().map(|sentence| Part::Warning(format!("{sentence}.")))
    }
}

impl Report {
    /// Inserts `facts` below the first heading.
    pub fn with_facts(mut self, facts: Part) -> Self {
        self.parts.insert(1.min(self.parts.len()), facts);
        self
    }

    /// The text of the first heading.
    pub fn title(&self) -> &str {
        match self.parts.first() {
            Some(Part::Heading(title)) => title,
            _ => "",
        }
    }

    /// Renders the report, with a final line break.
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Table => self.text(),
            Format::Markdown => self.markdown(),
            Format::Csv => self.rows.csv(),
            Format::Json => format!("{}\n", self.record_json),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_format_names() {
        for (name, format) in Format::ALL {
            assert_eq!(name.parse(), Ok(format));
        }
        assert!("xml".parse::<Format>().is_err());
    }
}
