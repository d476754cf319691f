//! A report and the formats it can be printed in.

use std::str::FromStr;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::footer::Footer;
use crate::table::Table;

/// Columns of a report as text.
pub const TEXT_COLUMNS: usize = 75;

/// How a report is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text as in the cover letter of a kernel patch, [`TEXT_COLUMNS`] wide.
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
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Its parts, in order.
    pub parts: Vec<Part>,
    /// Its results as one flat table, for CSV.
    pub rows: Table,
    /// Scope, command and environment.
    pub footer: Footer,
    /// The whole report as a JSON object.
    pub json: String,
}

/// A part of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A heading.
    Heading(String),
    /// Labels, each with what it says.
    Facts(Vec<(String, String)>),
    /// Items, each on lines of its own.
    List(Vec<String>),
    /// A paragraph.
    Paragraph(String),
    /// A table.
    Table(Table),
    /// Lines that stay as they are.
    Preformatted(String),
}

impl Part {
    /// What a reader should know: sentences without their full stop.
    pub(crate) fn warnings(sentences: &[String]) -> impl Iterator<Item = Part> {
        sentences.iter().map(|sentence| Part::Paragraph(format!("Warning: {sentence}.")))
    }
}

impl Report {
    /// This report with `facts` under its first heading.
    pub fn of(mut self, facts: Part) -> Self {
        self.parts.insert(1.min(self.parts.len()), facts);
        self
    }

    /// The report in `format`, ending in a line break.
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Table => self.text(),
            Format::Markdown => self.markdown(),
            Format::Csv => self.rows.csv(),
            Format::Json => format!("{}\n", self.json),
        }
    }

    fn text(&self) -> String {
        let mut blocks: Vec<String> = self.parts.iter().map(Part::text).collect();
        blocks.push(
            [
                wrap(self.footer.limits(), "Scope:   ", "         "),
                wrap(&self.footer.engine(), "Engine:  ", "         "),
                // Not wrapped: it is there to be copied.
                format!("Command: {}\n", self.footer.command),
            ]
            .concat(),
        );
        blocks.join("\n")
    }

    fn markdown(&self) -> String {
        let mut blocks: Vec<String> = self.parts.iter().map(Part::markdown).collect();
        blocks.push(format!(
            "- Scope: {}\n- Engine: {}\n- Command: `{}`\n",
            self.footer.limits(),
            self.footer.engine(),
            self.footer.command
        ));
        blocks.join("\n")
    }
}

impl Part {
    pub(crate) fn text(&self) -> String {
        match self {
            Part::Heading(text) => {
                let lines = wrap(text, "", "");
                let width = lines.lines().map(|line| line.chars().count()).max().unwrap_or(0);
                format!("{lines}{}\n", "=".repeat(width))
            }
            Part::Facts(facts) => facts.iter().map(|(label, text)| labelled(label, text)).collect(),
            Part::List(items) => items.iter().map(|item| wrap(item, "  ", "    ")).collect(),
            Part::Paragraph(text) => wrap(text, "", ""),
            Part::Table(table) => table.text(),
            Part::Preformatted(text) => format!("{text}\n"),
        }
    }

    fn markdown(&self) -> String {
        match self {
            Part::Heading(text) => format!("## {text}\n"),
            Part::Facts(facts) => {
                facts.iter().map(|(label, text)| format!("- {label}: {text}\n")).collect()
            }
            Part::List(items) => items.iter().map(|item| format!("- {item}\n")).collect(),
            Part::Paragraph(text) => format!("{text}\n"),
            Part::Table(table) => table.markdown(),
            Part::Preformatted(text) => format!("```\n{text}\n```\n"),
        }
    }
}

/// `object` as indented JSON.
///
/// # Panics
/// When `object` cannot be JSON, which no report's can.
pub(crate) fn to_json(object: &impl Serialize) -> String {
    serde_json::to_string_pretty(object).expect("a report has text keys only")
}

/// Writes `value` without line breaks and indents, which would take most of the room of many
/// numbers.
pub(crate) fn in_one_line<T: Serialize, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let text = serde_json::to_string(value).map_err(S::Error::custom)?;
    RawValue::from_string(text).map_err(S::Error::custom)?.serialize(serializer)
}

/// What a label says, behind the widest label.
fn labelled(name: &str, text: &str) -> String {
    let first = format!("{:<11}", format!("{name}:"));
    wrap(text, &first, &" ".repeat(first.len()))
}

/// `text` in lines of [`TEXT_COLUMNS`], the first behind `first`, the others behind `rest`.
fn wrap(text: &str, first: &str, rest: &str) -> String {
    let mut lines = vec![first.to_string()];
    let mut empty = true;
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        if !empty && line.chars().count() + 1 + word.chars().count() > TEXT_COLUMNS {
            lines.push(format!("{rest}{word}"));
            continue;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped() {
        let text = wrap(&"word ".repeat(30), "A: ", "   ");
        assert!(text.lines().all(|line| line.len() <= TEXT_COLUMNS), "{text}");
        assert_eq!(text.lines().count(), 3);
        assert!(text.starts_with("A: word") && text.contains("\n   word"));
        assert_eq!(wrap("", "A:", ""), "A:\n");
        let long = "x".repeat(100);
        assert_eq!(wrap(&long, "", ""), format!("{long}\n"));
    }

    #[test]
    fn formats() {
        for (name, format) in Format::ALL {
            assert_eq!(name.parse(), Ok(format));
        }
        assert!("xml".parse::<Format>().is_err());
    }
}
