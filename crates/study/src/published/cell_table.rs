//! Tables and CSV rows of cells, declared in the data.

use std::collections::BTreeMap;

use filemap_report::units::{bytes, time};
use filemap_report::{Head, Table};
use serde::Deserialize;
use serde_json::Value;

use crate::json::raw;

/// Declares a table: which cells, and which columns. `{0}` and `{1}` in any text stand for an entry
/// of `each` or `rows`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellTable {
    #[serde(default)]
    title: String,
    /// One table for each of these.
    #[serde(default = "once")]
    each: Vec<Vec<String>>,
    /// One row for each of these.
    #[serde(default = "once")]
    rows: Vec<Vec<String>>,
    /// Filter: value by path; an empty value matches anything.
    #[serde(default)]
    of: BTreeMap<String, String>,
    /// Paths whose equal values group cells into a row; if empty, each cell is a row.
    #[serde(default)]
    by: Vec<String>,
    columns: Vec<CellColumn>,
}

/// A single entry without placeholders.
fn once() -> Vec<Vec<String>> {
    vec![Vec::new()]
}

/// Heading and path of a figure; optionally its format, and the filter that selects a cell of the
/// row.
#[derive(Debug, Deserialize)]
#[serde(from = "Vec<String>")]
struct CellColumn {
    heading: String,
    place: String,
    format: String,
    /// Path and value that select the cell.
    filter: Option<(String, String)>,
}

impl From<Vec<String>> for CellColumn {
    fn from(texts: Vec<String>) -> Self {
        let text = |at: usize| texts.get(at).cloned().unwrap_or_default();
        let filter = texts.get(3).and_then(|text| text.split_once('='));
        let filter = filter.map(|(place, text)| (place.to_string(), text.to_string()));
        CellColumn { heading: text(0), place: text(1), format: text(2), filter }
    }
}

impl CellColumn {
    /// The value in the row of `cells`.
    fn value(&self, cells: &[&Value], texts: &[String]) -> Option<Value> {
        let place = fill_placeholders(&self.place, texts);
        place.split('|').find_map(|place| match place.strip_prefix('=') {
            Some(text) => Some(Value::String(text.to_string())),
            None => {
                let is_own = |cell: &&&Value| {
                    self.filter.as_ref().is_none_or(|(place, text)| has(cell, place, text))
                };
                cells.iter().filter(is_own).find_map(|cell| at(cell, place)).cloned()
            }
        })
    }
}

impl CellTable {
    /// Text tables; those without rows are omitted.
    pub fn tables(&self, cells: &[Value]) -> Vec<Table> {
        let table = |texts: &Vec<String>| {
            let rows = self.values(cells, texts);
            let is_text = |column: usize| {
                rows.iter().any(|row| matches!(&row[column], Some(Value::String(_))))
            };
            let head = |(at, column): (usize, &CellColumn)| Head {
                name: fill_placeholders(&column.heading, texts),
                right: !is_text(at),
            };
            let written = |row: &Vec<Option<Value>>| -> Vec<String> {
                let cells = self.columns.iter().zip(row);
                cells
                    .map(|(own, value)| {
                        format_value(value.as_ref(), &fill_placeholders(&own.format, texts))
                    })
                    .collect()
            };
            let is_seen = |row: &Vec<String>| {
                self.rows.len() == 1 || row[1..].iter().any(|text| is_nonzero(text))
            };
            let rows: Vec<Vec<String>> = rows.iter().map(written).filter(is_seen).collect();
            let columns = self.columns.iter().enumerate().map(head).collect();
            (!rows.is_empty()).then(|| Table {
                title: fill_placeholders(&self.title, texts),
                columns,
                rows,
            })
        };
        self.each.iter().filter_map(table).collect()
    }

    /// CSV rows, named by the headings.
    pub fn csv(&self, cells: &[Value]) -> Table {
        let rows = self.values(cells, &[]).into_iter();
        Table {
            title: String::new(),
            columns: self.columns.iter().map(|column| Head::text(&column.heading)).collect(),
            rows: rows.map(|row| row.iter().map(|value| raw(value.as_ref())).collect()).collect(),
        }
    }

    /// Values of each row, for the entry `texts` of `each`.
    fn values(&self, cells: &[Value], texts: &[String]) -> Vec<Vec<Option<Value>>> {
        let is_own = |cell: &&Value| {
            self.of.iter().all(|(place, text)| {
                has(cell, &fill_placeholders(place, texts), &fill_placeholders(text, texts))
            })
        };
        let key = |cell: &Value| -> Vec<Option<Value>> {
            self.by.iter().map(|place| at(cell, place).cloned()).collect()
        };
        let mut groups: Vec<Vec<&Value>> = Vec::new();
        for cell in cells.iter().filter(is_own) {
            let alike =
                groups.iter_mut().find(|own| !self.by.is_empty() && key(own[0]) == key(cell));
            match alike {
                Some(own) => own.push(cell),
                None => groups.push(vec![cell]),
            }
        }
        let row = |cells: &[&Value], own: &[String]| {
            let texts = if own.is_empty() { texts } else { own };
            self.columns.iter().map(|column| column.value(cells, texts)).collect()
        };
        groups.iter().flat_map(|cells| self.rows.iter().map(|own| row(cells, own))).collect()
    }
}

/// Replaces the placeholders of `text`.
fn fill_placeholders(text: &str, texts: &[String]) -> String {
    let fill = |text: String, (at, own): (usize, &String)| text.replace(&format!("{{{at}}}"), own);
    texts.iter().enumerate().fold(text.to_string(), fill)
}

/// The value at path `place` of a cell, such as `figures/counters/major_faults`.
fn at<'a>(cell: &'a Value, place: &str) -> Option<&'a Value> {
    cell.pointer(&format!("/{place}")).filter(|value| !value.is_null())
}

fn has(cell: &Value, place: &str, text: &str) -> bool {
    at(cell, place).is_some_and(|value| text.is_empty() || format_value(Some(value), "") == text)
}

/// Formats `value`: number of decimals, preceded by `+` for an explicit sign, followed by a unit.
fn format_value(value: Option<&Value>, format: &str) -> String {
    let number = match value {
        None => return "-".to_string(),
        Some(Value::String(text)) => return text.clone(),
        Some(Value::Bool(is_so)) => return if *is_so { "yes" } else { "no" }.to_string(),
        Some(value) if format.is_empty() => {
            return value.to_string().trim_end_matches(".0").to_string();
        }
        Some(value) => value.as_f64().unwrap_or(f64::NAN),
    };
    let (digits, unit) = format.split_once(' ').unwrap_or((format, ""));
    let text = match digits {
        "KiB" => bytes(number * 1024.0),
        "ns" => time(number),
        digits => match digits.strip_prefix('+') {
            Some(digits) => signed(number, digits.parse().unwrap_or(0)),
            None => format!("{number:.*}", digits.parse().unwrap_or(0)),
        },
    };
    if unit.is_empty() { text } else { format!("{text} {unit}") }
}

/// Formats a figure with its sign; without one if it rounds to 0.
pub fn signed(value: f64, digits: usize) -> String {
    let text = format!("{value:+.digits$}");
    if is_nonzero(&text) { text } else { text.trim_start_matches(['+', '-']).to_string() }
}

/// Whether a formatted figure is nonzero.
fn is_nonzero(text: &str) -> bool {
    text.contains(|digit: char| ('1'..='9').contains(&digit))
}

/// Columns that are empty in every row: their path names nothing.
#[cfg(test)]
pub fn empty_columns(report: &filemap_report::Report) -> Vec<String> {
    let mut empty = Vec::new();
    for part in &report.parts {
        let filemap_report::Part::Table(table) = part else { continue };
        for (at, head) in table.columns.iter().enumerate() {
            if table.rows.iter().all(|row| ["", "-"].contains(&row[at].as_str())) {
                empty.push(format!("{} of '{}'", head.name, table.title));
            }
        }
    }
    empty
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_has_no_sign() {
        let shown = [-0.004, 0.004, 0.0, -0.006, 12.345].map(|value| signed(value, 2));
        assert_eq!(shown, ["0.00", "0.00", "0.00", "-0.01", "+12.35"]);
    }

    #[test]
    fn cells_that_are_alike_share_a_row() {
        let text = "title = '{0}'\neach = [['of a'], ['of none']]\nby = ['size']\n\
                    of = { name = '{0}', read = '' }\n\
                    columns = [['size', 'size', 'KiB'], ['before', 'read', '1', 'with=no'],\
                    ['after', 'read', '+1 %', 'with=yes'], ['more', 'more|=x']]";
        let shown: CellTable = toml::from_str(text).unwrap();
        let cell = |size: u64, with: &str, read: f64| json!({ "name": "of a", "size": size, "with": with, "read": read, "more": null });
        let cells = [cell(4, "no", 1.0), cell(4, "yes", 2.5), cell(2048, "yes", 0.01)];
        let tables = shown.tables(&cells);
        assert_eq!((tables.len(), tables[0].title.as_str()), (1, "of a"));
        assert_eq!(tables[0].rows, [["4 KiB", "1.0", "+2.5 %", "x"], ["2 MiB", "-", "0.0 %", "x"]]);
        assert!(tables[0].columns[1].right && !tables[0].columns[3].right);
    }

    #[test]
    fn program_rows_are_unchanged() {
        let text = "rows = [['a'], ['b']]\ncolumns = [['of', '={0}'], ['value', 'in/{0}']]";
        let shown: CellTable = toml::from_str(text).unwrap();
        let rows = shown.csv(&[json!({ "in": { "a": 0.25, "b": true } })]).rows;
        assert_eq!(rows, [["a", "0.25"], ["b", "true"]]);
    }
}
