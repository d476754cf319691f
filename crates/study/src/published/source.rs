//! Origin and status of a series.

use serde::{Deserialize, Serialize};

use filemap_report::Part;

/// Purpose, status and measured setup of a series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SeriesSource {
    /// Title, version and date of the series.
    pub title: String,
    /// What the series changes, as a sentence without a full stop.
    pub does: String,
    /// Status: posted, merged or dropped.
    #[serde(default)]
    pub status: String,
    /// The version that published the figures.
    #[serde(default)]
    judged: String,
    /// All known versions, the oldest first.
    #[serde(default, alias = "version")]
    pub versions: Vec<Version>,
    /// Measured workload and machine.
    pub setup: String,
}

/// A version of a series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Version {
    pub name: String,
    /// Date of posting or merge.
    pub date: String,
    /// Message-ID, commit, or archive location.
    pub id: String,
    /// Status: posted, merged or dropped.
    pub status: String,
    /// Series name for `--with`, if modelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
}

impl SeriesSource {
    /// First parts of the series' report.
    pub fn parts(&self) -> Vec<Part> {
        vec![
            Part::Lead(format!("What it does: {}.", self.does)),
            Part::Paragraph(format!("Status: {}. Its versions:", self.status)),
            self.versions_list(),
            Part::Paragraph(format!("Measured on: {}.", self.setup)),
        ]
    }

    /// List of its versions.
    pub fn versions_list(&self) -> Part {
        let version_text = |version: &Version| version.format_version(version.name == self.judged);
        Part::List(self.versions.iter().map(version_text).collect())
    }
}

impl Version {
    fn format_version(&self, is_judged: bool) -> String {
        let Version { name, date, id, status, with } = self;
        let is_message = id.contains('@') && !id.contains(' ');
        let id = if is_message { format!("Message-ID {id}") } else { id.clone() };
        let with = with.as_ref().map_or(String::new(), |with| format!("; --with {with}"));
        let judged = if is_judged { "; the published figures are of it" } else { "" };
        format!("{name}, {date}: {status}{judged}{with}; {id}")
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::series::Series as Switches;

    use super::super::data::Series;
    use super::super::registry::NAMES;

    #[test]
    fn every_series_has_summary_and_status() {
        for source in NAMES.map(|name| &Series::find(name).unwrap().source) {
            assert!(!source.does.is_empty() && !source.does.ends_with('.'), "{}", source.does);
            assert!(!source.status.is_empty() && !source.status.ends_with('.'), "{source:?}");
            let judged = source.versions.iter().filter(|version| version.name == source.judged);
            assert_eq!(judged.count(), 1, "{source:?}");
        }
    }

    #[test]
    fn the_names_of_versions_are_series() {
        let sources = NAMES.map(|name| &Series::find(name).unwrap().source);
        let named = sources.iter().flat_map(|source| &source.versions);
        for with in named.filter_map(|version| version.with.as_ref()) {
            assert!(with.parse::<Switches>().is_ok(), "{with}");
        }
    }

    #[test]
    fn a_version_says_how_to_find_it() {
        let [exec, bound] = ["exec-order", "vma-bound"].map(|name| Series::find(name).unwrap());
        let series_text = |at: usize, series: &Series| {
            let version = &series.source.versions[at];
            version.format_version(version.name == series.source.judged)
        };
        let v5 = series_text(3, exec);
        assert!(v5.starts_with("v5, 2026-05-22: superseded by v6"), "{v5}");
        assert!(v5.contains("; the published figures are of it; --with exec-order-v5"), "{v5}");
        assert!(v5.ends_with("; Message-ID 20260522162422.3856502-1-usama.arif@linux.dev"), "{v5}");
        assert!(series_text(3, bound).contains("commit 13a1e1a61885"), "{}", series_text(3, bound));
    }
}
