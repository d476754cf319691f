//! What was measured of a program as it is and with the best answers, beside what was predicted.

mod judge;
mod running;
mod selected;
mod shown;
#[cfg(test)]
mod tests;

use filemap_job::Spread;
use serde::{Deserialize, Serialize};

pub use self::running::{RUNS, shown};
pub(super) use self::shown::parts;
use super::Advice;
use crate::trial::{OUTCOMES, Outcome, Ran, differ};
use crate::verdict::{p_value, samples};

/// One run of a program, and of all that it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckRun {
    /// Pages that were read from disks.
    pub pages_read: u64,
    /// What else it came to.
    #[serde(flatten)]
    pub ran: Ran,
}

/// The runs with one answer, or as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct CheckVariant {
    /// The position in `tried`; `null` is the program as it is.
    pub tried: Option<usize>,
    pub changes: Vec<String>,
    pub pages_read: Spread,
    pub major_faults: Spread,
    pub elapsed_ns: Spread,
    /// How often chance alone sets the times apart from those as it is as much; `null` of these.
    pub p_value: Option<f64>,
    /// What it is beside the program as it is; `null` of that.
    pub beside: Option<String>,
    /// In order.
    pub runs: Vec<CheckRun>,
}

/// What was not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "CheckLeftOut")]
#[allow(missing_docs, reason = "their names say it")]
pub struct LeftOut {
    /// The position in `tried`.
    pub tried: usize,
    pub changes: Vec<String>,
    /// The end of a sentence.
    pub reason: String,
}

/// What the check says of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "CheckVerdict")]
pub enum Verdict {
    /// The answer is the best of what was run, or within 10 % of it.
    Confirmed,
    /// Chance may be all that tells it from another, or from doing nothing.
    Tie,
    /// Something else is faster.
    NotConfirmed,
    /// The program reads more or takes longer with it than as it is.
    Refuted,
    /// There were too few runs.
    #[default]
    NotTested,
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Check {
    /// How often each was run.
    pub runs: u64,
    pub verdict: Verdict,
    /// The verdict in words.
    pub text: String,
    /// The answer that was checked, as a position in `tried`; `null` is to leave the program as it
    /// is.
    pub answer: Option<usize>,
    /// The program as it is first.
    pub variants: Vec<CheckVariant>,
    pub left_out: Vec<LeftOut>,
    /// What the program did otherwise with an answer. There should be nothing.
    pub differences: Vec<String>,
    /// What else a reader should know, in sentences.
    pub notes: Vec<String>,
}

impl LeftOut {
    /// The trial of `advice` at this position, which was not run for this `reason`.
    fn of(advice: &Advice, (tried, reason): (usize, String)) -> Self {
        LeftOut { tried, changes: advice.tried[tried].changes.clone(), reason }
    }
}

/// A figure of each of `runs`.
fn all(runs: &[CheckRun], value: fn(&CheckRun) -> u64) -> Vec<f64> {
    samples(runs.iter().map(value))
}

fn times(runs: &[CheckRun]) -> Vec<f64> {
    all(runs, |run| run.ran.elapsed_ns)
}

fn spread(runs: &[CheckRun], value: fn(&CheckRun) -> u64) -> Spread {
    Spread::of(runs.iter().map(value)).expect("each variant has a run")
}

impl Check {
    /// With what `variants` say of the answer of `advice`: the program as it is, and then trials by
    /// their positions, each with its runs, of which there is one at least.
    fn concluded(mut self, advice: &Advice, variants: Vec<(Option<usize>, Vec<CheckRun>)>) -> Self {
        let plain = variants[0].1.clone();
        let variant = |(tried, runs): (Option<usize>, Vec<CheckRun>)| CheckVariant {
            tried,
            changes: tried.map_or(Vec::new(), |at| advice.tried[at].changes.clone()),
            pages_read: spread(&runs, |run| run.pages_read),
            major_faults: spread(&runs, |run| run.ran.major_faults),
            elapsed_ns: spread(&runs, |run| run.ran.elapsed_ns),
            p_value: tried.map(|_| p_value(&times(&runs), &times(&plain))),
            beside: tried.map(|_| judge::in_words(judge::beside(&runs, &plain))),
            runs,
        };
        self.variants = variants.into_iter().map(variant).collect();
        self.differences = self.differences();
        (self.verdict, self.text) = judge::judged(&advice.now, &self);
        self
    }

    /// What runs with an answer did otherwise than those of the program as it is, in sentences
    /// without a full stop. There should be nothing: advice cannot change what a program computes.
    /// What differs among the runs as it is already is not compared.
    fn differences(&self) -> Vec<String> {
        let Some((plain, others)) = self.variants.split_first() else { return Vec::new() };
        let of_outcome = |outcome: &Outcome| {
            let differs = |of: &&CheckVariant| differ(of.ran(), plain.ran(), *outcome);
            let said = |of: &CheckVariant| {
                let (name, label) = (outcome.0, of.label());
                format!("{name} with {label} differs from that of the program as it is")
            };
            others.iter().filter(differs).map(said).collect::<Vec<_>>()
        };
        OUTCOMES.iter().flat_map(of_outcome).collect()
    }

    /// Whether it says that the answer of `advice` is wrong, or that the program did something else
    /// than what was recorded.
    pub fn fails(&self, advice: &Advice) -> bool {
        self.verdict == Verdict::Refuted
            || judge::other_work(&advice.now, &self.variants[0]).is_some()
            || !self.differences.is_empty()
    }
}

impl CheckVariant {
    fn label(&self) -> String {
        self.tried.map_or("as it is".to_string(), |_| self.changes.join(" + "))
    }

    fn ran(&self) -> impl Iterator<Item = &Ran> + Clone {
        self.runs.iter().map(|run| &run.ran)
    }
}
