//! Reports as text, as in the cover letter of a kernel patch.

use crate::report::{Footer, Part, Report};
use crate::table::{Head, SOFT_HYPHEN, Table};

/// Width of a report as text.
pub const TEXT_COLUMNS: usize = 75;

/// Whether `table` fits the width of text.
pub fn fits(table: &Table) -> bool {
    table.text().lines().all(|line| line.chars().count() <= TEXT_COLUMNS)
}

impl Report {
    pub(crate) fn text(&self) -> String {
        let mut blocks: Vec<String> = self.to_read().filter_map(Part::text).collect();
        blocks.push(self.footer.text());
        blocks.join("\n")
    }

    /// Its parts, without headings of sections that have only pictures. The title stays.
    pub(crate) fn to_read(&self) -> impl Iterator<Item = &Part> {
        let heads_pictures = |index: usize| {
            let is_heading = |part: &Part| matches!(part, Part::Heading(_));
            let below = self.parts[index + 1..].iter().take_while(|part| !is_heading(part));
            let mut below = below.peekable();
            index > 0
                && is_heading(&self.parts[index])
                && below.peek().is_some()
                && below.all(|part| part.text().is_none())
        };
        let parts = self.parts.iter().enumerate();
        parts.filter(move |(index, _)| !heads_pictures(*index)).map(|(_, part)| part)
    }
}

impl Footer {
    fn text(&self) -> String {
        let facts = self.facts.iter().map(|(label, text)| {
            let first = format!("{:<9}", format!("{label}:"));
            wrap(text, &first, &" ".repeat(first.len()))
        });
        // The command is not wrapped, so that it can be copied.
        facts.chain([format!("Command: {}\n", self.command)]).collect()
    }
}

impl Part {
    /// As text; `None` for pictures.
    pub(crate) fn text(&self) -> Option<String> {
        Some(match self {
            Part::Heading(text) => {
                let lines = wrap(text, "", "");
                let width = lines.lines().map(|line| line.chars().count()).max().unwrap_or(0);
                format!("{lines}{}\n", "=".repeat(width))
            }
            Part::Facts(facts) => facts.iter().map(|(label, text)| labelled(label, text)).collect(),
            Part::List(items) => items.iter().map(|item| wrap(item, "  ", "    ")).collect(),
            Part::Lead(text) | Part::Paragraph(text) => wrap(text, "", ""),
            Part::Warning(text) => wrap(&format!("Warning: {text}"), "", ""),
            Part::Table(table) => table.text(),
            Part::Comparison(comparison) => comparison.table().text(),
            Part::Preformatted(text) => format!("{text}\n"),
            Part::Cards(_)
            | Part::Bars(_)
            | Part::Dots(_)
            | Part::Plot(_)
            | Part::Drawn(_)
            | Part::Details(_) => return None,
        })
    }
}

impl Table {
    /// The table, aligned with spaces.
    pub fn text(&self) -> String {
        let widths = self.widths();
        let mut text = String::new();
        if !self.title.is_empty() {
            text += &format!("{}\n\n", self.title);
        }
        for line in self.heading_lines() {
            text += &self.line(line.iter().map(String::as_str), &widths);
        }
        let rules: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
        text += &self.line(rules.iter().map(String::as_str), &widths);
        for row in &self.rows {
            let height = row.iter().map(|cell| cell.split('\n').count()).max().unwrap_or(0);
            for number in 0..height {
                let part =
                    |cell: &'_ String| cell.split('\n').nth(number).unwrap_or_default().to_string();
                let parts: Vec<String> = row.iter().map(part).collect();
                text += &self.line(parts.iter().map(String::as_str), &widths);
            }
        }
        text
    }

    /// Widths of the columns in characters.
    fn widths(&self) -> Vec<usize> {
        let width = |(index, head): (usize, &Head)| {
            let lines = self.rows.iter().flat_map(|row| row[index].split('\n'));
            let cells = lines.map(|line| line.chars().count());
            let heading = head.lines().map(|text| text.chars().count());
            heading.chain(cells).max().unwrap_or(0)
        };
        self.columns.iter().enumerate().map(width).collect()
    }

    /// The lines of the headings, aligned at the bottom.
    fn heading_lines(&self) -> Vec<Vec<String>> {
        let headings: Vec<Vec<String>> =
            self.columns.iter().map(|column| column.lines().collect()).collect();
        let height = headings.iter().map(Vec::len).max().unwrap_or(0);
        let line = |number: usize| {
            let from_bottom = height - number;
            let part = |heading: &Vec<String>| {
                let part = heading.len().checked_sub(from_bottom);
                part.map_or(String::new(), |part| heading[part].clone())
            };
            headings.iter().map(part).collect()
        };
        (0..height).map(line).collect()
    }

    fn line<'a>(&self, cells: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
        let cells = self.columns.iter().zip(cells).zip(widths);
        let padded: Vec<_> =
            cells.map(|((column, cell), &width)| column.pad(cell, width)).collect();
        format!("{}\n", padded.join("  ").trim_end())
    }
}

impl Head {
    fn lines(&self) -> impl Iterator<Item = String> {
        self.name.split('\n').map(|part| part.replace(SOFT_HYPHEN, "-"))
    }

    fn pad(&self, text: &str, width: usize) -> String {
        if self.right { format!("{text:>width$}") } else { format!("{text:<width$}") }
    }
}

/// A fact, with its value after a column of labels.
fn labelled(name: &str, text: &str) -> String {
    let first = format!("{:<11}", format!("{name}:"));
    wrap(text, &first, &" ".repeat(first.len()))
}

/// Wraps `text` at [`TEXT_COLUMNS`], with prefixes for the first line and the others.
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
    fn aligns_columns() {
        let table = Table {
            title: "Pages".to_string(),
            columns: vec![Head::text("name"), Head::number("long\nN")],
            rows: vec![
                vec!["a".to_string(), "1".to_string()],
                vec!["b|\"c,".to_string(), "12345".to_string()],
            ],
        };
        let expected =
            "Pages\n\n        long\nname       N\n-----  -----\na          1\nb|\"c,  12345\n";
        assert_eq!(table.text(), expected);
    }

    #[test]
    fn omits_sections_with_only_pictures() {
        let heading = |text: &str| Part::Heading(text.to_string());
        let drawn = || Part::Cards(Vec::new());
        let paragraph = Part::Paragraph("read".to_string());
        let report = Report {
            parts: vec![
                heading("title"),
                heading("drawn"),
                drawn(),
                heading("c"),
                drawn(),
                paragraph,
            ],
            rows: Table::default(),
            footer: Footer {
                facts: Vec::new(),
                command: String::new(),
                origin: String::new(),
                environment: serde_json::Map::new(),
            },
            record_json: String::new(),
        };
        let text = report.text();
        assert!(text.starts_with("title\n=====\n\nc\n=\n\nread\n"), "{text}");
    }

    #[test]
    fn shows_soft_hyphens_at_line_ends() {
        let divided = Head::text("page-\nmap\u{ad}\ncount\nhere");
        assert!(divided.lines().eq(["page-", "map-", "count", "here"]));
    }

    #[test]
    fn wraps_lines() {
        let text = wrap(&"word ".repeat(30), "A: ", "   ");
        assert!(text.lines().all(|line| line.len() <= TEXT_COLUMNS), "{text}");
        assert_eq!(text.lines().count(), 3);
        assert!(text.starts_with("A: word") && text.contains("\n   word"));
        assert_eq!(wrap("", "A:", ""), "A:\n");
        let long = "x".repeat(100);
        assert_eq!(wrap(&long, "", ""), format!("{long}\n"));
    }
}
