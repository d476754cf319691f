//! What was measured: the files of `data/measured`, with machine and date, of which documents show
//! tables and a list.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::repository::Repository;
use crate::shown;

/// Where the files lie.
pub const DIRECTORY: &str = "data/measured/";

/// Which part of a document is made of these files: `FILE TABLE`, or `list` for a line of each.
pub const KIND: &str = "measured";

/// One measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// What was measured.
    pub title: String,
    /// What came of it, in half a sentence.
    pub says: String,
    /// On which machine.
    pub machine: String,
    /// On which day, or the last of several.
    pub date: String,
    /// What repeats it.
    pub command: String,
    /// How it was measured, and what is to be seen in it.
    pub notes: String,
    /// The figures.
    #[serde(default, rename = "table")]
    pub tables: Vec<Table>,
}

/// Figures of one kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    name: String,
    columns: Vec<String>,
    /// Of each column, digits after the point.
    decimals: Option<Vec<usize>>,
    rows: Vec<Vec<Cell>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Cell {
    Whole(i64),
    Number(f64),
    Text(String),
}

/// The measurement that the file at `path` holds.
///
/// # Errors
/// When the file is no measurement, or one without a machine, a date or a command.
pub fn read(path: &str, text: &str) -> Result<Measured> {
    let measured: Measured = toml::from_str(text).with_context(|| path.to_string())?;
    let Measured { title, says, machine, date, command, .. } = &measured;
    for (key, text) in [("title", title), ("says", says), ("machine", machine), ("date", date)]
        .into_iter()
        .chain([("command", command)])
    {
        ensure!(!text.trim().is_empty(), "{path}: '{key}' is empty");
    }
    ensure!(is_date(date), "{path}: '{date}' is no date");
    for table in &measured.tables {
        let width = table.columns.len();
        let decimals = table.decimals.as_ref().map_or(width, Vec::len);
        let is_whole = decimals == width && table.rows.iter().all(|row| row.len() == width);
        ensure!(is_whole, "{path}: a row of '{}' has not {width} cells", table.name);
    }
    Ok(measured)
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([4, 2, 2])
        && parts.concat().chars().all(|c| c.is_ascii_digit())
}

/// What `words` of the document at this path ask for.
///
/// # Errors
/// When there is no such table, or a file is no measurement.
pub fn show(words: &str, document: &str, repository: &Repository) -> Result<String> {
    if words == "list" {
        return list(repository);
    }
    let (file, name) = words.split_once(' ').context("it names no file and table")?;
    let path = format!("{DIRECTORY}{file}.toml");
    let text = repository.text(&path).with_context(|| format!("{path} does not exist"))?;
    let measured = read(&path, text)?;
    let Some(table) = measured.tables.iter().find(|table| table.name == name) else {
        bail!("{path} has no table '{name}'");
    };
    Ok(format!("{}\n{}.\n", table.markdown(), source(&path, document, &measured)))
}

/// A line for each file, in order.
fn list(repository: &Repository) -> Result<String> {
    let mut lines = String::new();
    for file in repository.under(DIRECTORY, ".toml") {
        let measured = read(&file.path, &file.text)?;
        let name = file.path.trim_start_matches(DIRECTORY).trim_end_matches(".toml");
        let Measured { says, date, .. } = &measured;
        lines += &folded(&format!("- `{name}`, {date}: {says}."));
    }
    Ok(lines)
}

/// An item of a list in lines of at most this many columns.
const COLUMNS: usize = 100;

fn folded(item: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in item.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > COLUMNS {
            text += "\n  ";
            column = 2;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += width;
    }
    text + "\n"
}

fn source(path: &str, document: &str, measured: &Measured) -> String {
    let Measured { machine, date, .. } = measured;
    let up = "../".repeat(document.matches('/').count());
    format!("[{path}]({up}{path}), {date}: {machine}")
}

impl Table {
    fn markdown(&self) -> String {
        let digits = |column: usize| self.decimals.as_ref().map_or(0, |all| all[column]);
        let row = |row: &Vec<Cell>| {
            let cells = row.iter().enumerate();
            cells.map(|(column, cell)| cell.text(digits(column))).collect()
        };
        shown::table(&self.columns, &self.rows.iter().map(row).collect::<Vec<_>>())
    }
}

impl Cell {
    fn text(&self, digits: usize) -> String {
        match self {
            Cell::Whole(number) => grouped(*number),
            Cell::Number(number) => format!("{number:.digits$}"),
            Cell::Text(text) => text.clone(),
        }
    }
}

/// The number with a comma before each three digits.
fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "title = 't'\nsays = 'it holds'\nmachine = 'one'\ndate = '2026-11-21'\n\
        command = 'filemap doctor'\nnotes = 'n'\n[[table]]\nname = 'a'\n\
        columns = ['k', 'pages', 's']\ndecimals = [0, 0, 2]\nrows = [['x', 1234567, 0.5]]\n";

    #[test]
    fn a_table_has_its_machine_and_date() {
        let repository = Repository::of(&[("data/measured/f.toml", FILE)]);
        let shown = show("f a", "docs/A.md", &repository).unwrap();
        let expected = "| k | pages | s |\n|---|--:|--:|\n| x | 1,234,567 | 0.50 |\n\n\
            [data/measured/f.toml](../data/measured/f.toml), 2026-11-21: one.\n";
        assert_eq!(shown, expected);
        let deeper = show("f a", "docs/results/a.md", &repository).unwrap();
        assert!(deeper.contains("](../../data/measured/f.toml)"), "{deeper}");
        let list = show("list", "docs/A.md", &repository).unwrap();
        assert_eq!(list, "- `f`, 2026-11-21: it holds.\n");
        for wrong in ["f", "f b", "g a"] {
            assert!(show(wrong, "docs/A.md", &repository).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_measurement_is_whole() {
        assert!(read("f", FILE).is_ok());
        for (from, to) in [
            ("'one'", "''"),
            ("2026-11-21", "yesterday"),
            ("command", "comand"),
            (", 0.5]", "]"),
            ("[0, 0, 2]", "[2]"),
        ] {
            assert!(read("f", &FILE.replace(from, to)).is_err(), "{from}");
        }
    }

    #[test]
    fn a_long_item_is_folded() {
        let item = format!("- {}", "word ".repeat(40).trim_end());
        let text = folded(&item);
        assert_eq!(text.split_whitespace().collect::<Vec<_>>().join(" "), item);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() <= COLUMNS));
        assert!(lines[1..].iter().all(|line| line.starts_with("  word")));
    }

    #[test]
    fn numbers_are_grouped() {
        let of = [0, 12, 123, 1234, -1_234_567].map(grouped);
        assert_eq!(of, ["0", "12", "123", "1,234", "-1,234,567"]);
    }
}
