//! What was measured, for programs.

use filemap_job::Spread;
use serde::Serialize;

use super::judge::in_words;
use super::tables::spread;
use super::{Check, CheckRun, Checked, judge};
use crate::advise::{Change, Study};
use crate::verdict::p_value;

/// What was measured, as a part of the report.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "CheckEntry")]
pub struct Entry<'a> {
    /// How often each was run.
    runs: u64,
    /// `confirmed`, `tie`, `not-confirmed`, `refuted` or `not-tested`.
    verdict: &'static str,
    /// The verdict in words.
    text: String,
    /// The answer that was checked, as a position in `tried`; `null` is to leave the program as it
    /// is.
    answer: Option<usize>,
    /// The program as it is first.
    variants: Vec<VariantEntry<'a>>,
    /// What was not run.
    left_out: Vec<LeftOutEntry<'a>>,
    /// What the program did otherwise with an answer. There should be nothing.
    differences: Vec<String>,
    notes: &'a [String],
}

/// The runs with one answer.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "CheckVariant")]
struct VariantEntry<'a> {
    /// The position in `tried`; `null` is the program as it is.
    tried: Option<usize>,
    changes: Vec<String>,
    pages_read: Spread,
    major_faults: Spread,
    elapsed_ns: Spread,
    /// How often chance alone sets the times apart from those as it is as much; `null` of these.
    p_value: Option<f64>,
    /// What it is beside the program as it is; `null` of that.
    beside: Option<String>,
    runs: &'a [CheckRun],
}

/// What was not run.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "CheckLeftOut")]
struct LeftOutEntry<'a> {
    /// The position in `tried`.
    tried: usize,
    changes: Vec<String>,
    /// The end of a sentence.
    reason: &'a str,
}

fn changes(study: &Study, trial: Option<usize>) -> Vec<String> {
    let changes = trial.map_or(&[][..], |trial| &study.trials[trial].changes);
    changes.iter().map(Change::label).collect()
}

/// `check` as a part of the report.
pub fn entry<'a>(study: &Study, check: &'a Check) -> Entry<'a> {
    let judged = judge(study, check);
    let plain = &check.variants[0];
    let variant = |of: &'a Checked| {
        let ns = of.all(|run| run.elapsed_ns);
        VariantEntry {
            tried: of.trial,
            changes: changes(study, of.trial),
            pages_read: spread(of.all(|run| run.pages_read)),
            major_faults: spread(of.all(|run| run.major_faults)),
            p_value: of.trial.map(|_| p_value(&of.ns(), &plain.ns())),
            elapsed_ns: spread(ns),
            beside: of.trial.map(|_| in_words(of.beside(plain))),
            runs: &of.runs,
        }
    };
    Entry {
        runs: check.runs,
        verdict: judged.verdict.name(),
        text: judged.text,
        answer: check.answer,
        variants: check.variants.iter().map(variant).collect(),
        left_out: check
            .left_out
            .iter()
            .map(|of| LeftOutEntry {
                tried: of.trial,
                changes: changes(study, Some(of.trial)),
                reason: &of.reason,
            })
            .collect(),
        differences: check.differences(study),
        notes: &check.notes,
    }
}
