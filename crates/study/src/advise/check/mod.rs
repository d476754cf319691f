//! What was measured of a program as it is and with the best answers, beside what was predicted.

mod data;
mod judge;
mod tables;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub(super) use self::data::{Entry, entry};
pub use self::judge::{Judged, Verdict, judge};
use super::{Choice, Study, answer};
use filemap_report::Part;

/// One run of a program, and of all that it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The trial, as an index of the study's; `None` is the program as it is.
    pub trial: Option<usize>,
    /// Its runs, in order: at least one.
    pub runs: Vec<CheckRun>,
}

/// An answer that was not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The trial, as an index of the study's.
    pub trial: usize,
    /// Why: the end of a sentence.
    pub reason: String,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// How often each was run.
    pub runs: u64,
    /// The trial that is the answer among those that can be run; `None` is to leave it as it is.
    pub answer: Option<usize>,
    /// The program as it is, and then with each answer.
    pub variants: Vec<Checked>,
    /// What was not run.
    pub left_out: Vec<LeftOut>,
    /// What else a reader should know, in sentences.
    pub notes: Vec<String>,
}

impl Check {
    /// What runs with an answer did otherwise than those of the program as it is, in sentences
    /// without a full stop. There should be nothing: advice cannot change what a program computes.
    /// What differs among the runs as it is already is not compared.
    pub fn differences(&self, study: &Study) -> Vec<String> {
        let mut differences = Vec::new();
        let Some((plain, others)) = self.variants.split_first() else { return differences };
        for (name, value) in OUTCOMES {
            let first = value(&plain.runs[0]);
            if plain.runs.iter().any(|run| value(run) != first) {
                continue;
            }
            let differs = |of: &&Checked| of.runs.iter().any(|run| value(run) != first);
            differences.extend(others.iter().filter(differs).map(|of| {
                let label = label(study, of.trial);
                format!("{name} with {label} differs from that of the program as it is")
            }));
        }
        differences
    }

    /// Whether the check says that the answer is wrong, or that the program did something else.
    pub fn fails(&self, study: &Study) -> bool {
        judge(study, self).verdict == Verdict::Refuted
            || judge::other_work(study, &self.variants[0]).is_some()
            || !self.differences(study).is_empty()
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

/// What a trial is called.
fn label(study: &Study, trial: Option<usize>) -> String {
    trial.map_or("as it is".to_string(), |trial| study.trials[trial].label())
}

/// What a reader sees of `check`, the verdict first.
pub(super) fn parts(study: &Study, check: &Check) -> Vec<Part> {
    let mut parts = vec![Part::Heading("What was measured".to_string())];
    let differences = check.differences(study);
    parts.extend(differences.iter().map(|what| Part::Paragraph(format!("Check failed: {what}."))));
    parts.push(Part::Paragraph(judge(study, check).text));
    if let Choice::Best { best, .. } = answer(&study.now, &study.trials)
        && !check.variants.iter().any(|of| of.trial == Some(best))
    {
        parts.push(Part::Paragraph(format!(
            "The answer above, {}, was not run, so nothing here confirms it.",
            label(study, Some(best))
        )));
    }
    parts.push(Part::Table(tables::counts(study, check)));
    parts.push(Part::Table(tables::times(study, check)));
    parts.push(Part::Paragraph(tables::note(check)));
    let left_out = check.left_out.iter();
    let left_out =
        left_out.map(|of| format!("{} was not run: {}.", label(study, Some(of.trial)), of.reason));
    let left_out: Vec<String> = left_out.collect();
    if !left_out.is_empty() {
        parts.push(Part::List(left_out));
    }
    parts.extend(endings(check).into_iter().chain(check.notes.clone()).map(Part::Paragraph));
    parts
}

/// What is said where the program failed as it is.
fn endings(check: &Check) -> Option<String> {
    let plain = &check.variants.first()?.runs;
    let failed: Vec<&CheckRun> = plain.iter().filter(|run| run.exit_code != Some(0)).collect();
    let how = |run: &CheckRun| match (run.exit_code, run.signal) {
        (_, Some(signal)) => format!("by signal {signal}"),
        (code, None) => format!("with exit code {}", code.unwrap_or_default()),
    };
    let first = failed.first()?;
    Some(format!(
        "The program failed in {} of its {} runs as it is: one ended {}. The figures are those of \
         what it did until then.",
        failed.len(),
        plain.len(),
        how(first)
    ))
}
