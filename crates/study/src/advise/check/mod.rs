//! `advise --check`: runs the program unchanged and with the best changes in turn, and compares its
//! figures with the predictions.

mod report;
mod running;
mod selection;
#[cfg(test)]
mod tests;
mod verdict;

use filemap_job::Spread;
use serde::{Deserialize, Serialize};

pub(super) use self::report::parts;
pub use self::running::shell_line;
use super::AdviseRecord;
pub use crate::trial::{DEFAULT_RUNS, keep_retained_pages};
use crate::trial::{EXIT, OUTPUTS, Observable, RunSample, differs_from_plain, spread, values};
use crate::verdict::p_value;

/// The runs of one variant: with a change, or unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct CheckVariant {
    /// Index in `tried`; `null` for the unchanged program.
    pub tried: Option<usize>,
    pub changes: Vec<String>,
    pub pages_read: Spread,
    pub major_faults: Spread,
    pub elapsed_ns: Spread,
    /// p-value of its times against the unchanged program's; `null` for the unchanged program
    /// itself.
    pub p_value: Option<f64>,
    /// Comparison with the unchanged program; `null` for the unchanged program itself.
    pub beside: Option<String>,
    /// In the order in which they were made.
    pub runs: Vec<RunSample>,
}

/// A change that was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "CheckLeftOut")]
#[allow(missing_docs, reason = "their names say it")]
pub struct SkippedChange {
    /// Index in `tried`.
    pub tried: usize,
    pub changes: Vec<String>,
    /// The reason, as the end of a sentence.
    pub reason: String,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "CheckVerdict")]
pub enum CheckVerdict {
    /// The answer is the best variant, or within 10 % of it.
    Confirmed,
    /// It does not differ from another variant, or from doing nothing, by more than chance.
    Tie,
    /// Another variant is faster.
    NotConfirmed,
    /// The unchanged program reads another number of pages than predicted, so that the predictions
    /// are of another program.
    Mispredicted,
    /// With it the program takes longer than unchanged, or reads more in the same time.
    Refuted,
    /// There were too few runs.
    #[default]
    NotTested,
}

/// A check of the answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Check {
    /// Runs of each variant.
    pub runs: u64,
    pub verdict: CheckVerdict,
    /// The verdict as a sentence.
    pub text: String,
    /// Index in `tried` of the checked answer; `null` if the answer is to change nothing.
    pub answer: Option<usize>,
    /// The variants, the unchanged program first.
    pub variants: Vec<CheckVariant>,
    pub left_out: Vec<SkippedChange>,
    /// Differences in behaviour with a change. There should be none.
    pub differences: Vec<String>,
    /// Sentences for the reader.
    pub notes: Vec<String>,
}

impl SkippedChange {
    fn new(advice: &AdviseRecord, (tried, reason): (usize, String)) -> Self {
        SkippedChange { tried, changes: advice.tried[tried].changes.clone(), reason }
    }
}

/// Pages that a run read from disks.
const PAGES_READ: fn(&RunSample) -> u64 = |run| run.pages_read;

/// The elapsed time of a run.
const ELAPSED_NS: fn(&RunSample) -> u64 = |run| run.elapsed_ns;

impl Check {
    /// Compares `variants`: the unchanged program first, then changes by their index in `tried`,
    /// each with at least one run.
    fn with_results(
        mut self,
        advice: &AdviseRecord,
        variants: Vec<(Option<usize>, Vec<RunSample>)>,
    ) -> Self {
        let plain = variants[0].1.clone();
        let variant = |(tried, runs): (Option<usize>, Vec<RunSample>)| CheckVariant {
            tried,
            changes: tried.map_or(Vec::new(), |at| advice.tried[at].changes.clone()),
            pages_read: spread(&runs, PAGES_READ),
            major_faults: spread(&runs, |run| run.major_faults),
            elapsed_ns: spread(&runs, ELAPSED_NS),
            p_value: tried
                .map(|_| p_value(&values(&runs, ELAPSED_NS), &values(&plain, ELAPSED_NS))),
            beside: tried.map(|_| verdict::text(verdict::compare(&runs, &plain))),
            runs,
        };
        self.variants = variants.into_iter().map(variant).collect();
        self.differences = self.differences();
        (self.verdict, self.text) = verdict::judge(advice, &self);
        self
    }

    /// Differences in behaviour between changed and plain runs, as sentences without a full stop.
    /// Behaviour that already differs among the plain runs is not compared.
    fn differences(&self) -> Vec<String> {
        let Some((plain, others)) = self.variants.split_first() else { return Vec::new() };
        let differences = |observable: &Observable| {
            let differs = |variant: &&CheckVariant| {
                differs_from_plain(variant.runs.iter(), plain.runs.iter(), *observable)
            };
            let sentence = |variant: &CheckVariant| {
                let (name, label) = (observable.0, variant.label());
                format!("{name} with {label} differs from that of the program as it is")
            };
            others.iter().filter(differs).map(sentence).collect::<Vec<_>>()
        };
        [EXIT].iter().chain(&OUTPUTS).flat_map(differences).collect()
    }

    /// Whether the answer of `advice` is refuted, or the program did not do the recorded work.
    pub fn fails(&self, advice: &AdviseRecord) -> bool {
        matches!(self.verdict, CheckVerdict::Refuted | CheckVerdict::Mispredicted)
            || verdict::other_work_warning(&advice.now, &self.variants[0]).is_some()
            || !self.differences.is_empty()
    }
}

impl CheckVariant {
    fn label(&self) -> String {
        self.tried.map_or("as it is".to_string(), |_| self.changes.join(" + "))
    }
}
