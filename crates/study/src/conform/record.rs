//! Record of a comparison of decisions.

use filemap_job::record::{RecordKind, SCHEMA};
use filemap_job::{ShownKind, ShownKinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::comparison::{FirstDifference, LogComparison};
use super::differences::Difference;
use super::evidence::{SeriesCoverage, SeriesMatch, find_doubt};
use crate::footer::Footer;

/// Record of `filemap conform`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct ConformRecord {
    pub(super) schema: u32,
    /// What the record is of.
    pub(super) kind: RecordKind,
    /// Whether the kernel was booted; otherwise it is the running one.
    #[serde(default)]
    pub booted: bool,
    /// Missing tracepoints: their decisions were not compared.
    #[serde(default)]
    pub not_shown: Vec<String>,
    /// Kernel whose rules the model applied.
    #[serde(default)]
    pub rules: Option<String>,
    /// Series that the model switched on.
    #[serde(default)]
    pub with: Option<String>,
    /// How many jobs depend on the series; null without one.
    #[serde(default)]
    pub switched: Option<SeriesCoverage>,
    /// Other series that explain the kernel; null if no job differs.
    #[serde(default)]
    pub likeness: Option<SeriesMatch>,
    pub patterns: Vec<PatternResult>,
    #[serde(default)]
    pub differences: Vec<Difference>,
    /// Commands that show more about the job of a difference, saved as `job.toml`.
    #[serde(default)]
    pub commands: Vec<String>,
    #[serde(flatten)]
    pub footer: Footer,
}

/// Result of a pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct PatternResult {
    pub name: String,
    pub decisions: u64,
    /// Number of readahead calls; null if the kernel does not show them.
    pub readahead_calls: Option<u64>,
    #[serde(default)]
    pub excluded: u64,
    /// Number of excluded lines that no timing of the device explains.
    #[serde(default)]
    pub unexplained: u64,
    pub mismatches: u64,
    pub first_mismatch: Option<FirstDifference>,
    pub not_compared: Option<String>,
    pub left_out: Option<String>,
    pub ok: Option<bool>,
    /// The job as a job file.
    #[serde(default)]
    pub job: String,
}

/// Finding of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Finding {
    /// The logs were compared.
    Compared(LogComparison),
    /// There was no log of the kernel to compare with, for a reason in one line.
    NotCompared { reason: String },
    /// The machine lacks what the pattern needs: what, and the remedy, in one line.
    LeftOut { reason: String },
}

/// The kernel that is compared with the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// It was booted for the comparison; else it is the running one.
    pub is_booted: bool,
    /// Decisions that its tracepoints show.
    pub seen: ShownKinds,
}

impl Compared {
    /// Makes the record of `patterns`, without a footer.
    pub fn conformance(self, patterns: Vec<PatternResult>) -> ConformRecord {
        let missing = self.seen.missing().map(|kind| kind.tracepoint().to_string());
        ConformRecord {
            schema: SCHEMA,
            kind: RecordKind::Conform,
            booted: self.is_booted,
            not_shown: missing.collect(),
            patterns,
            ..ConformRecord::default()
        }
    }

    /// Result of pattern `name`, whose job file is `job`.
    pub fn pattern(self, name: String, finding: Finding, job: String) -> PatternResult {
        let calls = |calls| self.seen.has(ShownKind::Window).then_some(calls);
        let none =
            PatternResult { name, job, readahead_calls: calls(0), ..PatternResult::default() };
        let found = match finding {
            Finding::NotCompared { reason } => {
                return PatternResult { not_compared: Some(reason), ..none };
            }
            Finding::LeftOut { reason } => return PatternResult { left_out: Some(reason), ..none },
            Finding::Compared(found) => found,
        };
        let is_doubtful = find_doubt(found.decisions, found.unexplained).is_some();
        PatternResult {
            decisions: found.decisions,
            readahead_calls: calls(found.readahead_calls),
            excluded: found.excluded,
            unexplained: found.unexplained,
            mismatches: found.mismatches,
            first_mismatch: found.first.map(|first| *first),
            ok: Some(found.mismatches == 0 && !is_doubtful),
            ..none
        }
    }
}

impl PatternResult {
    /// Whether the logs differ or are inconclusive.
    pub fn differs(&self) -> bool {
        self.ok == Some(false)
    }

    /// Why the result is inconclusive, if it is.
    pub(super) fn doubt(&self) -> Option<String> {
        self.ok.and_then(|_| find_doubt(self.decisions, self.unexplained))
    }
}

impl ConformRecord {
    /// Sum of all compared patterns.
    pub(super) fn total(&self) -> PatternResult {
        let sum = |field: fn(&PatternResult) -> u64| {
            self.patterns.iter().map(field).fold(0, u64::saturating_add)
        };
        let calls = self.patterns.iter().filter_map(|own| own.readahead_calls);
        PatternResult {
            name: "all".to_string(),
            decisions: sum(|own| own.decisions),
            readahead_calls: calls.reduce(u64::saturating_add),
            excluded: sum(|own| own.excluded),
            unexplained: sum(|own| own.unexplained),
            mismatches: sum(|own| own.mismatches),
            ok: Some(true),
            ..PatternResult::default()
        }
    }

    /// Number of patterns that failed to compare although the machine supports them.
    pub fn not_compared(&self) -> usize {
        self.patterns.iter().filter(|pattern| pattern.not_compared.is_some()).count()
    }

    /// Number of skipped patterns.
    pub fn left_out(&self) -> usize {
        self.patterns.iter().filter(|pattern| pattern.left_out.is_some()).count()
    }

    /// Missing capabilities, with the patterns that need them.
    pub(super) fn unmet_needs(&self) -> Vec<(&str, Vec<&str>)> {
        let mut lacking: Vec<(&str, Vec<&str>)> = Vec::new();
        for pattern in &self.patterns {
            let Some(reason) = &pattern.left_out else { continue };
            match lacking.iter_mut().find(|(other, _)| other == reason) {
                Some((_, names)) => names.push(&pattern.name),
                None => lacking.push((reason, vec![&pattern.name])),
            }
        }
        lacking
    }

    /// Why the patterns together are inconclusive, although each alone may not be.
    pub fn doubt(&self) -> Option<String> {
        let is_compared = self.patterns.iter().any(|pattern| pattern.ok.is_some());
        is_compared.then(|| self.total().doubt()).flatten()
    }
}
