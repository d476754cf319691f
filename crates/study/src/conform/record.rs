//! What a comparison of decisions found, as it is written and read.

use filemap_job::record::SCHEMA;
use filemap_job::{Seen, ShownKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::comparison::{Comparison, First};
use super::differences::Difference;
use super::doubt::doubt;
use super::likeness::Likeness;
use super::switched::Switched;
use crate::footer::Footer;

/// What a kernel decided beside what the model decided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Conformance {
    pub(super) schema: u32,
    /// Whether the kernel was booted for it; else it is the running one.
    #[serde(default)]
    pub booted: bool,
    /// Tracepoints that the kernel does not have: what they show was not compared.
    #[serde(default)]
    pub not_shown: Vec<String>,
    /// The rules of the model, by the kernel that has them.
    #[serde(default)]
    pub rules: Option<String>,
    /// The series that it switched on.
    #[serde(default)]
    pub with: Option<String>,
    /// Of how many jobs these change the decisions; null without a series.
    #[serde(default)]
    pub switched: Option<Switched>,
    /// Which other series explain what the kernel does; null where no job differs.
    #[serde(default)]
    pub likeness: Option<Likeness>,
    pub patterns: Vec<Pattern>,
    #[serde(default)]
    pub differences: Vec<Difference>,
    /// What shows more of the job of a difference, as `job.toml`.
    #[serde(default)]
    pub commands: Vec<String>,
    #[serde(flatten)]
    pub footer: Footer,
}

/// A pattern that was to be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Pattern {
    pub name: String,
    pub decisions: u64,
    /// Null where the kernel shows none.
    pub readahead_calls: Option<u64>,
    #[serde(default)]
    pub excluded: u64,
    /// Of the excluded lines those that no timing of the device explains.
    #[serde(default)]
    pub unexplained: u64,
    pub mismatches: u64,
    pub first_mismatch: Option<First>,
    pub not_compared: Option<String>,
    pub left_out: Option<String>,
    pub ok: Option<bool>,
    /// The job as a job file.
    #[serde(default)]
    pub job: String,
}

/// What came of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Finding {
    /// The logs were compared.
    Compared(Comparison),
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
    /// What its tracepoints show.
    pub seen: Seen,
}

impl Compared {
    /// The record of `patterns` that were compared with this kernel, without a footer.
    pub fn conformance(self, patterns: Vec<Pattern>) -> Conformance {
        let missing = self.seen.missing().map(|kind| kind.tracepoint().to_string());
        Conformance {
            schema: SCHEMA,
            booted: self.is_booted,
            not_shown: missing.collect(),
            patterns,
            ..Conformance::default()
        }
    }

    /// What was found of the pattern `name`, whose job file is `job`.
    pub fn pattern(self, name: String, finding: Finding, job: String) -> Pattern {
        let calls = |calls| self.seen.has(ShownKind::Window).then_some(calls);
        let none = Pattern { name, job, readahead_calls: calls(0), ..Pattern::default() };
        let found = match finding {
            Finding::NotCompared { reason } => {
                return Pattern { not_compared: Some(reason), ..none };
            }
            Finding::LeftOut { reason } => return Pattern { left_out: Some(reason), ..none },
            Finding::Compared(found) => found,
        };
        let is_doubtful = doubt(found.decisions, found.unexplained).is_some();
        Pattern {
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

impl Pattern {
    /// Whether the logs were compared, and differ or do not show that they agree.
    pub fn differs(&self) -> bool {
        self.ok == Some(false)
    }

    /// Why it does not show that kernel and model agree, although no line may differ.
    pub(super) fn doubt(&self) -> Option<String> {
        self.ok.and_then(|_| doubt(self.decisions, self.unexplained))
    }
}

impl Conformance {
    /// All patterns that were compared, as one.
    pub(super) fn total(&self) -> Pattern {
        let sum =
            |of: fn(&Pattern) -> u64| self.patterns.iter().map(of).fold(0, u64::saturating_add);
        let calls = self.patterns.iter().filter_map(|own| own.readahead_calls);
        Pattern {
            name: "all".to_string(),
            decisions: sum(|own| own.decisions),
            readahead_calls: calls.reduce(u64::saturating_add),
            excluded: sum(|own| own.excluded),
            unexplained: sum(|own| own.unexplained),
            mismatches: sum(|own| own.mismatches),
            ok: Some(true),
            ..Pattern::default()
        }
    }

    /// How many patterns were not compared although the machine has what they need.
    pub fn not_compared(&self) -> usize {
        self.patterns.iter().filter(|pattern| pattern.not_compared.is_some()).count()
    }

    /// How many patterns were left out.
    pub fn left_out(&self) -> usize {
        self.patterns.iter().filter(|pattern| pattern.left_out.is_some()).count()
    }

    /// What the machine lacks, each with the patterns that need it.
    pub(super) fn lacking(&self) -> Vec<(&str, Vec<&str>)> {
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

    /// Why the patterns together do not show that kernel and model agree, although each alone may.
    pub fn doubt(&self) -> Option<String> {
        let is_compared = self.patterns.iter().any(|pattern| pattern.ok.is_some());
        is_compared.then(|| self.total().doubt()).flatten()
    }
}
