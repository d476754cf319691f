//! Measurements: the files of `data/measured`, whose tables documents show.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::markdown;
use crate::repository::Repository;

/// Directory of the files.
pub const DIRECTORY: &str = "data/measured/";

/// The kind of generated sections made from these files. Their words are `FILE TABLE`, or `list`
/// for a line about each file.
pub const KIND: &str = "measured";

/// One measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasurementFile {
    /// The subject.
    pub title: String,
    /// The result, in half a sentence.
    pub says: String,
    /// The machine.
    pub machine: String,
    /// The day, or the last one of several.
    pub date: String,
    /// The command that repeats it.
    pub command: String,
    /// Method and discussion.
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
    /// Digits after the decimal point, by column.
    decimals: Option<Vec<usize>>,
    rows: Vec<Vec<TableValue>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum TableValue {
    Whole(i64),
    Number(f64),
    Text(String),
}

/// Parses `text`, the file at `path`.
///
/// # Errors
/// When a key is missing, unknown or empty, the date is malformed, or a table is ragged.
pub fn read(path: &str, text: &str) -> Result<MeasurementFile> {
    let measured: MeasurementFile = toml::from_str(text).with_context(|| path.to_string())?;
    let MeasurementFile { title, says, machine, date, command, .. } = &measured;
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

/// The section that `words` of the document at this path ask for.
///
/// # Errors
/// When there is no such table, or a file is malformed.
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
        let MeasurementFile { says, date, .. } = &measured;
        lines += &wrap(&format!("- `{name}`, {date}: {says}."));
    }
    Ok(lines)
}

/// Width of generated lists.
const COLUMNS: usize = 100;

fn wrap(item: &str) -> String {
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

fn source(path: &str, document: &str, measured: &MeasurementFile) -> String {
    let MeasurementFile { machine, date, .. } = measured;
    let up = "../".repeat(document.matches('/').count());
    format!("[{path}]({up}{path}), {date}: {machine}")
}

impl Table {
    fn markdown(&self) -> String {
        let digits = |column: usize| self.decimals.as_ref().map_or(0, |all| all[column]);
        let row = |row: &Vec<TableValue>| {
            let cells = row.iter().enumerate();
            cells.map(|(column, cell)| cell.text(digits(column))).collect()
        };
        markdown::table(&self.columns, &self.rows.iter().map(row).collect::<Vec<_>>())
    }
}

impl TableValue {
    fn text(&self, digits: usize) -> String {
        match self {
            TableValue::Whole(number) => group_digits(*number),
            TableValue::Number(number) => format!("{number:.digits$}"),
            TableValue::Text(text) => text.clone(),
        }
    }
}

/// Formats with thousands separators.
fn group_digits(number: i64) -> String {
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
    fn shows_tables_with_machine_and_date() {
        let repository = Repository::from_files(&[("data/measured/f.toml", FILE)]);
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
    fn refuses_incomplete_files() {
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
    fn a_long_item_is_wrap() {
        let item = format!("- {}", "word ".repeat(40).trim_end());
        let text = wrap(&item);
        assert_eq!(text.split_whitespace().collect::<Vec<_>>().join(" "), item);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() <= COLUMNS));
        assert!(lines[1..].iter().all(|line| line.starts_with("  word")));
    }

    #[test]
    fn groups_digits() {
        let texts = [0, 12, 123, 1234, -1_234_567].map(group_digits);
        assert_eq!(texts, ["0", "12", "123", "1,234", "-1,234,567"]);
    }
}
