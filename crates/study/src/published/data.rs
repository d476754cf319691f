//! Published figures, and the notes, tables and rows of their reports, as data.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use filemap_report::Part;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::cell_table::CellTable;
use super::source::SeriesSource;

/// The series by name.
static PUBLISHED: LazyLock<BTreeMap<String, Series>> = LazyLock::new(|| {
    let text = include_str!("../../../../data/published.toml");
    toml::from_str(text).expect("data/published.toml is of the form that is declared here")
});

/// Data of a series.
#[derive(Debug, Deserialize)]
pub struct Series {
    /// Purpose, postings and measured setup.
    #[serde(flatten)]
    pub source: SeriesSource,
    /// Why some cells are fitted.
    pub fitted_as: Option<String>,
    /// Why some cells are not judged.
    pub unjudged_as: Option<String>,
    /// Names of notes and tables in the order of the report.
    pub report: Vec<String>,
    notes: BTreeMap<String, String>,
    pub table: BTreeMap<String, CellTable>,
    /// Rows of its CSV.
    pub csv: Vec<CellTable>,
    /// Published figures, in a layout of the series' own.
    #[serde(flatten)]
    figures: toml::Table,
}

/// Values of the `{name}` placeholders of a note.
pub type Values<'a> = Vec<(&'a str, String)>;

/// Notes that appear once for each set of values. All others appear once.
pub type Notes<'a> = Vec<(&'a str, Vec<Values<'a>>)>;

impl Series {
    /// The series called `name`.
    pub fn find(name: &str) -> Option<&'static Series> {
        PUBLISHED.get(&name.replace('-', "_"))
    }

    /// Published figures of the series called `name`.
    ///
    /// # Panics
    /// If the data has another layout, which the tests of each series exclude.
    pub fn figures<T: DeserializeOwned>(name: &str) -> T {
        let series = Series::find(name).expect("the series is in data/published.toml");
        series.figures.clone().try_into().expect("its figures are of the form of its module")
    }

    /// The note called `name`, with its placeholders replaced by `values`.
    ///
    /// # Panics
    /// If there is no such note, which the tests of each series exclude.
    pub fn note(&self, name: &str, values: &[(&str, String)]) -> String {
        let note = self.notes.get(name).expect("the note is in data/published.toml");
        let mut note = note.split_whitespace().collect::<Vec<_>>().join(" ");
        for (place, value) in values {
            note = note.replace(&format!("{{{place}}}"), value);
        }
        note
    }

    /// Notes and tables for `cells`, given as JSON.
    pub fn parts(&self, cells: &[serde_json::Value], notes: &Notes) -> Vec<Part> {
        let (mut parts, once) = (Vec::new(), vec![Vec::new()]);
        for name in &self.report {
            if let Some(shown) = self.table.get(name) {
                parts.extend(shown.tables(cells).into_iter().map(Part::Table));
                continue;
            }
            let own = notes.iter().find(|(own, _)| own == name);
            let values = own.map_or(&once[..], |(_, values)| values);
            parts.extend(values.iter().map(|values| Part::Paragraph(self.note(name, values))));
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::super::registry::NAMES;
    use super::*;

    #[test]
    fn a_report_has_every_table_and_only_what_there_is() {
        for series in NAMES.map(|name| Series::find(name).unwrap()) {
            let is_there =
                |name: &String| series.table.contains_key(name) || series.notes.contains_key(name);
            assert!(series.report.iter().all(is_there), "{:?}", series.report);
            assert!(series.table.keys().all(|name| series.report.contains(name)));
        }
    }
}
