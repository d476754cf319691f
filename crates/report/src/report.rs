//! What a report is made of, and the formats that it can be printed in.

use std::str::FromStr;

use maud::Markup;
use serde_json::{Map, Value};

use crate::bars::Bars;
use crate::compared::ComparedTable;
use crate::dots::Dots;
use crate::plot::Plot;
use crate::table::Table;

/// How a report is printed.
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
    /// Its parts, in order. Text, Markdown and the letter keep to it. A page shows of each section
    /// what is to be looked at first.
    pub parts: Vec<Part>,
    /// Its results as one flat table, for CSV.
    pub rows: Table,
    pub footer: Footer,
    /// The record that it is made of, as a JSON object.
    pub record_json: String,
}

/// A part of a report. A sentence in it ends as its author ends it.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Part {
    /// The first is the title; each begins a section.
    Heading(String),
    /// The answer in a sentence or two.
    Lead(String),
    /// Labels, each with what it says.
    Facts(Vec<(String, String)>),
    List(Vec<String>),
    Paragraph(String),
    /// What a reader must not miss.
    Warning(String),
    Table(Table),
    /// A table in text and Markdown, bars too in a page, and all that it says in a letter.
    Comparison(ComparedTable),
    /// Lines that stay as they are.
    Preformatted(String),
    /// Figures that matter first. Only a page shows them, as those below: tables have the same
    /// figures.
    Cards(Vec<Card>),
    Bars(Bars),
    Dots(Dots),
    Plot(Plot),
    Drawn(Markup),
    /// What a page opens when it is asked to.
    Details(Details),
}

/// A figure that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Card {
    pub name: String,
    pub figure: String,
    /// What else is to be said of it.
    pub more: String,
}

/// Parts below a summary.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Details {
    pub summary: String,
    pub parts: Vec<Part>,
}

/// What a report says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Footer {
    /// Labels, each with what it says.
    pub facts: Vec<(String, String)>,
    /// What repeats it, as a shell takes it.
    pub command: String,
    /// What wrote it, and when.
    pub origin: String,
    /// Where its figures come from.
    pub environment: Map<String, Value>,
}

impl Card {
    /// A figure with its name, and what else is to be said of it.
    pub fn new(name: impl Into<String>, figure: String, more: impl Into<String>) -> Self {
        Card { name: name.into(), figure, more: more.into() }
    }
}

impl Part {
    /// What a reader must not miss: sentences without their full stop.
    pub fn warnings(sentences: &[String]) -> impl Iterator<Item = Part> {
        sentences.iter().map(|sentence| Part::Warning(format!("{sentence}.")))
    }
}

impl Report {
    /// This report with `facts` under its first heading.
    pub fn of(mut self, facts: Part) -> Self {
        self.parts.insert(1.min(self.parts.len()), facts);
        self
    }

    /// What its first heading says.
    pub fn title(&self) -> &str {
        match self.parts.first() {
            Some(Part::Heading(title)) => title,
            _ => "",
        }
    }

    /// The report in `format`, ending in a line break.
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
    fn formats() {
        for (name, format) in Format::ALL {
            assert_eq!(name.parse(), Ok(format));
        }
        assert!("xml".parse::<Format>().is_err());
    }
}
