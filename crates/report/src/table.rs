//! Tables of texts.

use crate::units::number;

/// Divides a word at the end of a heading's line. Text shows a hyphen; a heading in one line shows
/// nothing. A word with a hyphen may be divided there without it.
pub const SOFT_HYPHEN: char = '\u{ad}';

/// A table of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Title above it; may be empty.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Head>,
    /// Its rows, each with a cell for every column. Line breaks in cells are kept in text only.
    pub rows: Vec<Vec<String>>,
}

/// The heading of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The heading; may have several lines.
    pub name: String,
    /// Aligned to the right.
    pub right: bool,
}

impl Head {
    /// A column of words.
    pub fn text(name: impl Into<String>) -> Self {
        Head { name: name.into(), right: false }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>) -> Self {
        Head { name: name.into(), right: true }
    }

    /// The heading in one line, with divided words joined.
    pub fn one_line(&self) -> String {
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
}

impl Table {
    /// A table of `rows` without a title: columns of words, then columns of numbers.
    pub fn from_parts<Words: Into<String>, Numbers: Into<String>>(
        words: impl IntoIterator<Item = Words>,
        numbers: impl IntoIterator<Item = Numbers>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let words = words.into_iter().map(Head::text);
        let columns = words.chain(numbers.into_iter().map(Head::number)).collect();
        Table { title: String::new(), columns, rows: rows.into_iter().collect() }
    }

    /// Sets the title.
    pub fn with_title(self, title: impl Into<String>) -> Self {
        Table { title: title.into(), ..self }
    }

    /// Keeps at most this many rows, and adds the number of omitted ones in column `note_column`.
    pub fn truncate_rows(mut self, rows: usize, note_column: usize) -> Self {
        let left_out = self.rows.len().saturating_sub(rows);
        if left_out > 0 {
            self.rows.truncate(rows);
            let mut last = vec![String::new(); self.columns.len()];
            last[note_column] = format!("and {left_out} more (in JSON)");
            self.rows.push(last);
        }
        self
    }

    /// Adds the rows of `other`, with columns matched by name. Missing cells are empty.
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
}

/// A row: a name and counts.
pub fn count_row(name: impl Into<String>, counts: impl IntoIterator<Item = u64>) -> Vec<String> {
    let counts = counts.into_iter().map(|count| number(count as f64));
    [name.into()].into_iter().chain(counts).collect()
}

/// A cell with `text` wrapped at `columns` between words.
pub fn fold_cell(text: &str, columns: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        // `+` starts a line.
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

/// A cell in one line.
pub fn single_line(cell: &str) -> String {
    cell.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table {
            title: "Pages".to_string(),
            columns: vec![Head::text("name"), Head::number("long\nN")],
            rows: vec![
                vec!["a".to_string(), "1".to_string()],
                vec!["b|\"c,".to_string(), "12345".to_string()],
            ],
        }
    }

    #[test]
    fn joins_headings_to_one_line() {
        let line = |name: &str| Head::text(name).one_line();
        assert_eq!(line("read\nfrom\ndevice"), "read from device");
        assert_eq!(line("model\nread_ahead_kb=\n128+\np1"), "model read_ahead_kb=128+p1");
        assert_eq!(line("no-page-\nmapcount\npublished"), "no-page-mapcount published");
        let divided = Head::text("page-\nmap\u{ad}\ncount\nhere");
        assert_eq!(divided.one_line(), "page-mapcount here");
    }

    #[test]
    fn joins_tables_by_column_names() {
        let mut joined = table();
        let columns = vec![Head::text("other"), Head::text("name")];
        let rows = vec![vec!["o".to_string(), "n".to_string()]];
        joined.join(Table { title: String::new(), columns, rows });
        assert_eq!(joined.rows[0], ["a", "1", ""]);
        assert_eq!(joined.rows[2], ["n", "", "o"]);
    }

    #[test]
    fn folds_cells_between_words() {
        assert_eq!(fold_cell("read_ahead_kb=64", 27), "read_ahead_kb=64");
        assert_eq!(
            fold_cell("MADV_SEQUENTIAL on mapping 'data.mdb' + read_ahead_kb=64", 27),
            "MADV_SEQUENTIAL on mapping\n'data.mdb'\n+ read_ahead_kb=64"
        );
        let long = "a-name-that-is-longer-than-the-room-for-it";
        assert_eq!(
            fold_cell(&format!("MADV_RANDOM on {long}"), 27),
            format!("MADV_RANDOM on\n{long}")
        );
    }
}
