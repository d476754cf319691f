//! What was measured of a program as it is and with the best answers, beside what was predicted.

mod advising;
mod judge;
mod running;
mod selected;
mod shown;
#[cfg(test)]
mod tests;
mod writes;

use filemap_job::Spread;
use serde::{Deserialize, Serialize};

pub use self::advising::Advising;
pub use self::running::{RUNS, shown};
pub(super) use self::shown::parts;
pub use self::writes::may_write;
use super::Advice;
use crate::verdict::{p_value, samples};

/// One run of a program, and of all that it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckRun {
    /// Its exit code; null where a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Pages that were read from disks.
    pub pages_read: u64,
    /// Faults that waited for a disk.
    pub major_faults: u64,
    /// From its start to its end.
    pub elapsed_ns: u64,
    /// User and system time.
    pub cpu_ns: u64,
    /// Bytes of the recorded files that were in the page cache before.
    pub cached_bytes: u64,
    /// What tells one output on stdout from another: a digest of it.
    pub stdout: String,
    /// The same of stderr, without the lines that filemap itself writes there.
    pub stderr: String,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
    NotTested,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// Runs that were made, and what could not be run.
#[derive(Clone, Debug, Default, PartialEq)]
struct Measured {
    /// How often each was run.
    pub runs: u64,
    /// The answer among what can be run; `None` is to leave the program as it is.
    pub answer: Option<usize>,
    /// The program as it is, and then with trials by their positions: each with its runs, of which
    /// there is one at least.
    pub variants: Vec<(Option<usize>, Vec<CheckRun>)>,
    /// Trials by their positions, each with the end of a sentence that says why it was not run.
    pub left_out: Vec<(usize, String)>,
    /// In sentences.
    pub notes: Vec<String>,
}

/// A figure of each of `runs`.
fn all(runs: &[CheckRun], value: fn(&CheckRun) -> u64) -> Vec<f64> {
    samples(runs.iter().map(value))
}

fn spread(runs: &[CheckRun], value: fn(&CheckRun) -> u64) -> Spread {
    Spread::of(runs.iter().map(value)).expect("each variant has a run")
}

impl Check {
    /// What `measured` says of the answer of `advice`.
    ///
    /// # Panics
    /// Without runs of the program as it is, or of a variant.
    fn of(advice: &Advice, measured: Measured) -> Check {
        let labels =
            |at: Option<usize>| at.map_or(Vec::new(), |at| advice.tried[at].changes.clone());
        let plain = &measured.variants[0].1;
        let variant = |(tried, runs): &(Option<usize>, Vec<CheckRun>)| CheckVariant {
            tried: *tried,
            changes: labels(*tried),
            pages_read: spread(runs, |run| run.pages_read),
            major_faults: spread(runs, |run| run.major_faults),
            elapsed_ns: spread(runs, |run| run.elapsed_ns),
            p_value: tried.map(|_| {
                p_value(&all(runs, |run| run.elapsed_ns), &all(plain, |run| run.elapsed_ns))
            }),
            beside: tried.map(|_| judge::in_words(judge::beside(runs, plain))),
            runs: runs.clone(),
        };
        let left_out = |(at, reason): (usize, String)| LeftOut {
            tried: at,
            changes: labels(Some(at)),
            reason,
        };
        let mut check = Check {
            runs: measured.runs,
            verdict: Verdict::NotTested,
            text: String::new(),
            answer: measured.answer,
            variants: measured.variants.iter().map(variant).collect(),
            left_out: measured.left_out.into_iter().map(left_out).collect(),
            differences: Vec::new(),
            notes: measured.notes,
        };
        check.differences = check.differences();
        (check.verdict, check.text) = judge::judged(&advice.now, &check);
        check
    }

    /// What runs with an answer did otherwise than those of the program as it is, in sentences
    /// without a full stop. There should be nothing: advice cannot change what a program computes.
    /// What differs among the runs as it is already is not compared.
    fn differences(&self) -> Vec<String> {
        let mut differences = Vec::new();
        let Some((plain, others)) = self.variants.split_first() else { return differences };
        for (name, value) in OUTCOMES {
            let first = value(&plain.runs[0]);
            if plain.runs.iter().any(|run| value(run) != first) {
                continue;
            }
            let differs = |of: &&CheckVariant| of.runs.iter().any(|run| value(run) != first);
            differences.extend(others.iter().filter(differs).map(|of| {
                format!("{name} with {} differs from that of the program as it is", of.label())
            }));
        }
        differences
    }

    /// Whether it says that the answer of `advice` is wrong, or that the program did something else
    /// than what was recorded.
    pub fn fails(&self, advice: &Advice) -> bool {
        self.verdict == Verdict::Refuted
            || judge::other_work(&advice.now, &self.variants[0]).is_some()
            || !self.differences.is_empty()
    }
}

/// What a run came to, as text that is the same where that is.
type Value = fn(&CheckRun) -> String;

/// What is compared between runs.
const OUTCOMES: [(&str, Value); 3] = [
    ("the end", |run| format!("{:?} {:?}", run.exit_code, run.signal)),
    ("what stdout has", |run| run.stdout.clone()),
    ("what stderr has", |run| run.stderr.clone()),
];

impl CheckVariant {
    fn label(&self) -> String {
        self.tried.map_or("as it is".to_string(), |_| self.changes.join(" + "))
    }
}
