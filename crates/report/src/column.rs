//! Columns, each declared once for all forms.

use crate::table::{Head, Table};
use crate::units::{bytes, factor, number, time};

/// A column of a table whose rows are `R`.
#[allow(missing_docs, reason = "their names say it")]
pub struct Column<R: ?Sized> {
    /// Its name in CSV.
    pub key: &'static str,
    /// Heading in text, Markdown and pages; may have several lines.
    pub heading: &'static str,
    pub unit: Unit,
    pub better: Better,
    /// Its value in a row.
    pub value: fn(&R) -> CellValue,
}

/// The unit of a value, which decides how it is formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Unit {
    /// Text, aligned to the left.
    Text,
    Bytes,
    Count,
    Factor,
    Nanoseconds,
    /// With the percent sign.
    Percent,
    /// Percent without the sign, which the heading has.
    Share,
    /// A quotient with two decimals.
    Ratio,
}

/// Which of two values is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Better {
    Less,
    More,
    #[default]
    Neither,
}

/// The value of a cell.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum CellValue {
    /// Shown as `-`, and empty in CSV.
    Unknown,
    Text(String),
    Whole(u64),
    Number(f64),
}

impl<R> Column<R> {
    /// A column without a preference for less or more.
    pub const fn new(
        key: &'static str,
        heading: &'static str,
        unit: Unit,
        value: fn(&R) -> CellValue,
    ) -> Self {
        Column { key, heading, unit, better: Better::Neither, value }
    }
}

/// A column of text, not for CSV.
pub const fn text_column<R>(heading: &'static str, value: fn(&R) -> CellValue) -> Column<R> {
    Column { key: "", heading, unit: Unit::Text, better: Better::Neither, value }
}

/// A column of counts, or of texts aligned to the right, not for CSV.
pub const fn figure_column<R>(heading: &'static str, value: fn(&R) -> CellValue) -> Column<R> {
    Column { unit: Unit::Count, ..text_column(heading, value) }
}

/// A column for CSV only.
pub const fn csv_column<R>(key: &'static str, value: fn(&R) -> CellValue) -> Column<R> {
    Column { key, ..text_column("", value) }
}

/// A number with this many decimals.
pub fn fixed(value: Option<f64>, digits: usize) -> CellValue {
    value.map(|value| format!("{value:.digits$}")).into()
}

impl Unit {
    /// Formats `value`.
    pub fn text(self, value: f64) -> String {
        match self {
            Unit::Bytes => bytes(value),
            Unit::Text | Unit::Count => number(value),
            Unit::Factor => factor(value),
            Unit::Nanoseconds => time(value),
            Unit::Percent => format!("{value:.2} %"),
            Unit::Share => format!("{value:.1}"),
            Unit::Ratio => format!("{value:.2}"),
        }
    }
}

impl CellValue {
    fn number(&self) -> Option<f64> {
        match self {
            CellValue::Whole(whole) => Some(*whole as f64),
            CellValue::Number(number) => Some(*number),
            CellValue::Unknown | CellValue::Text(_) => None,
        }
    }

    /// Formats it for people.
    fn shown(&self, unit: Unit) -> String {
        match self {
            CellValue::Unknown => "-".to_string(),
            CellValue::Text(text) => text.clone(),
            value => value.number().map_or_else(String::new, |number| unit.text(number)),
        }
    }

    /// Formats it for programs; empty if unknown.
    fn raw(&self) -> String {
        match self {
            CellValue::Unknown => String::new(),
            CellValue::Text(text) => text.clone(),
            CellValue::Whole(whole) => whole.to_string(),
            CellValue::Number(number) => number.to_string(),
        }
    }
}

impl From<&str> for CellValue {
    fn from(text: &str) -> Self {
        CellValue::Text(text.to_string())
    }
}

impl From<String> for CellValue {
    fn from(text: String) -> Self {
        CellValue::Text(text)
    }
}

impl From<u64> for CellValue {
    fn from(whole: u64) -> Self {
        CellValue::Whole(whole)
    }
}

impl From<f64> for CellValue {
    fn from(number: f64) -> Self {
        CellValue::Number(number)
    }
}

impl<T: Into<CellValue>> From<Option<T>> for CellValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(CellValue::Unknown, Into::into)
    }
}

/// A table for people.
pub fn text_table<R>(title: impl Into<String>, columns: &[Column<R>], rows: &[R]) -> Table {
    let head = |column: &Column<R>| Head {
        name: column.heading.to_string(),
        right: column.unit != Unit::Text,
    };
    let cells = |row: &R| columns.iter().map(|own| (own.value)(row).shown(own.unit)).collect();
    Table {
        title: title.into(),
        columns: columns.iter().map(head).collect(),
        rows: rows.iter().map(cells).collect(),
    }
}

/// A table for CSV.
pub fn csv_table<R>(columns: &[Column<R>], rows: &[R]) -> Table {
    let cells = |row: &R| columns.iter().map(|own| (own.value)(row).raw()).collect();
    Table {
        title: String::new(),
        columns: columns.iter().map(|own| Head::text(own.key)).collect(),
        rows: rows.iter().map(cells).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row {
        name: &'static str,
        read: Option<u64>,
    }

    const COLUMNS: [Column<Row>; 2] = [
        Column {
            key: "name",
            heading: "file",
            unit: Unit::Text,
            better: Better::Neither,
            value: |row| row.name.into(),
        },
        Column {
            key: "bytes_read",
            heading: "read from\ndevice",
            unit: Unit::Bytes,
            better: Better::Less,
            value: |row| row.read.into(),
        },
    ];

    #[test]
    fn formats_for_people_and_for_csv() {
        let rows = [Row { name: "a", read: Some(4096) }, Row { name: "b", read: None }];
        let shown = text_table("Files", &COLUMNS, &rows);
        assert_eq!(shown.rows, [["a", "4 KiB"], ["b", "-"]]);
        let raw = csv_table(&COLUMNS, &rows);
        assert_eq!(raw.columns[1].name, "bytes_read");
        assert_eq!(raw.rows, [["a", "4096"], ["b", ""]]);
    }
}
