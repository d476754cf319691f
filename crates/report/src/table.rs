//! Tables as text, Markdown and CSV.

use std::fmt::Write;

/// At the end of a line of a heading: its word goes on in the next line. It is a hyphen in text,
/// and nothing where the heading is one line. A word that has a hyphen of its own may be divided
/// behind that.
pub(crate) const SOFT_HYPHEN: char = '\u{ad}';

/// A table of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What stands above it; may be empty.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows: as many cells as there are columns. A cell may have several lines, which only
    /// text keeps.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading; may have several lines.
    pub name: String,
    /// Its cells end, and do not begin, in one line.
    pub right: bool,
}

impl Column {
    /// A column of words.
    pub fn left(name: impl Into<String>) -> Self {
        Column { name: name.into(), right: false }
    }

    /// A column of numbers.
    pub fn right(name: impl Into<String>) -> Self {
        Column { name: name.into(), right: true }
    }

    fn heading(&self) -> impl Iterator<Item = String> {
        self.name.split('\n').map(|part| part.replace(SOFT_HYPHEN, "-"))
    }

    /// The heading in one line. A name that was divided behind a sign or a hyphen is joined again.
    pub(crate) fn one_line(&self) -> String {
        let mut line = String::new();
        for part in self.name.split('\n') {
            let is_divided = line.ends_with(['+', '=', '-', SOFT_HYPHEN]);
            line.truncate(line.trim_end_matches(SOFT_HYPHEN).len());
            if !line.is_empty() && !is_divided {
                line.push(' ');
            }
            line += part;
        }
        line
    }

    fn pad(&self, text: &str, width: usize) -> String {
        if self.right { format!("{text:>width$}") } else { format!("{text:<width$}") }
    }
}

impl Table {
    /// As a kernel's cover letter has it: aligned by spaces.
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

    /// As a table of Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        if !self.title.is_empty() {
            let _ = write!(text, "**{}**\n\n", self.title);
        }
        let names = self.columns.iter().map(Column::one_line);
        text += &markdown_row(names);
        let rules = self.columns.iter().map(|column| if column.right { "---:" } else { "---" });
        text += &markdown_row(rules.map(str::to_string));
        for row in &self.rows {
            text += &markdown_row(row.iter().map(|cell| in_one_line(cell).replace('|', "\\|")));
        }
        text
    }

    /// As CSV (RFC 4180, but lines end in LF).
    pub fn csv(&self) -> String {
        let mut text = csv_row(self.columns.iter().map(|column| column.name.as_str()));
        for row in &self.rows {
            text += &csv_row(row.iter().map(String::as_str));
        }
        text
    }

    /// Adds the rows of `other`. Columns are known by their names; a cell of a column that its
    /// table does not have is empty.
    pub fn join(&mut self, other: Table) {
        let mut places = Vec::new();
        for column in other.columns {
            let place = self.columns.iter().position(|own| own.name == column.name);
            places.push(place.unwrap_or(self.columns.len()));
            if place.is_none() {
                self.columns.push(column);
            }
        }
        for row in &mut self.rows {
            row.resize(self.columns.len(), String::new());
        }
        for row in other.rows {
            let mut joined = vec![String::new(); self.columns.len()];
            for (cell, &place) in row.into_iter().zip(&places) {
                joined[place] = cell;
            }
            self.rows.push(joined);
        }
    }

    /// Widths of the columns in characters.
    fn widths(&self) -> Vec<usize> {
        let width = |(index, column): (usize, &Column)| {
            let lines = self.rows.iter().flat_map(|row| row[index].split('\n'));
            let cells = lines.map(|line| line.chars().count());
            let heading = column.heading().map(|text| text.chars().count());
            heading.chain(cells).max().unwrap_or(0)
        };
        self.columns.iter().enumerate().map(width).collect()
    }

    /// The headings, line by line; shorter ones stand at the bottom.
    fn heading_lines(&self) -> Vec<Vec<String>> {
        let headings: Vec<Vec<String>> =
            self.columns.iter().map(|column| column.heading().collect()).collect();
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

/// A cell: `text` in lines of at most `columns`, as far as its words allow.
pub(crate) fn folded(text: &str, columns: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        // What is tried together with something else begins a line.
        let is_next = lines.last().is_none_or(|line| {
            word == "+" || line.chars().count() + 1 + word.chars().count() > columns
        });
        match lines.last_mut().filter(|_| !is_next) {
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_string()),
        }
    }
    lines.join("\n")
}

/// A cell where it has one line.
pub(crate) fn in_one_line(cell: &str) -> String {
    cell.replace('\n', " ")
}

fn markdown_row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn csv_row<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let quoted = cells.map(|cell| {
        if cell.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.to_string()
        }
    });
    format!("{}\n", quoted.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table {
            title: "Pages".to_string(),
            columns: vec![Column::left("name"), Column::right("long\nN")],
            rows: vec![
                vec!["a".to_string(), "1".to_string()],
                vec!["b|\"c,".to_string(), "12345".to_string()],
            ],
        }
    }

    #[test]
    fn text_is_aligned() {
        let expected =
            "Pages\n\n        long\nname       N\n-----  -----\na          1\nb|\"c,  12345\n";
        assert_eq!(table().text(), expected);
    }

    #[test]
    fn markdown_escapes_bars() {
        let expected = "**Pages**\n\n| name | long N |\n| --- | ---: |\n| a | 1 |\n\
                        | b\\|\"c, | 12345 |\n";
        assert_eq!(table().markdown(), expected);
    }

    #[test]
    fn markdown_headings_are_joined_to_one_line() {
        let line = |name: &str| Column::left(name).one_line();
        assert_eq!(line("read\nfrom\ndevice"), "read from device");
        assert_eq!(line("model\nread_ahead_kb=\n128+\np1"), "model read_ahead_kb=128+p1");
        assert_eq!(line("no-page-\nmapcount\npublished"), "no-page-mapcount published");
        let divided = Column::left("page-\nmap\u{ad}\ncount\nhere");
        assert_eq!(divided.one_line(), "page-mapcount here");
        assert!(divided.heading().eq(["page-", "map-", "count", "here"]));
    }

    #[test]
    fn tables_join_by_name() {
        let mut joined = table();
        let columns = vec![Column::left("other"), Column::left("name")];
        let rows = vec![vec!["o".to_string(), "n".to_string()]];
        joined.join(Table { title: String::new(), columns, rows });
        assert_eq!(joined.rows[0], ["a", "1", ""]);
        assert_eq!(joined.rows[2], ["n", "", "o"]);
    }

    #[test]
    fn cells_are_folded_between_words() {
        assert_eq!(folded("read_ahead_kb=64", 27), "read_ahead_kb=64");
        assert_eq!(
            folded("MADV_SEQUENTIAL on mapping 'data.mdb' + read_ahead_kb=64", 27),
            "MADV_SEQUENTIAL on mapping\n'data.mdb'\n+ read_ahead_kb=64"
        );
        let long = "a-name-that-is-longer-than-the-room-for-it";
        assert_eq!(
            folded(&format!("MADV_RANDOM on {long}"), 27),
            format!("MADV_RANDOM on\n{long}")
        );
    }

    #[test]
    fn csv_quotes() {
        let mut table = table();
        table.columns[1].name = "N".to_string();
        assert_eq!(table.csv(), "name,N\na,1\n\"b|\"\"c,\",12345\n");
    }
}
