//! What was tried, as JSON and CSV.

use filemap_job::record::SCHEMA;
use serde::Serialize;

use super::answer::{Words, Written, files};
use super::choice::Choice;
use super::tables::verdict;
use super::{Condition, Outcome, Study, answer, check};
use crate::footer::Footer;
use crate::json::to_json;
use filemap_report::{Head, Table};

/// The report as JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Json<'a> {
    schema: u32,
    #[serde(flatten)]
    footer: &'a Footer,
    warnings: &'a [String],
    /// What the recording or job file is called.
    name: &'a str,
    /// The answer in words: what helps each file, and what is best together.
    words: &'a [String],
    /// What to write for it.
    to_write: &'a [Written],
    /// What `filemap govern` does for it, where that helps.
    governed: Option<&'a str>,
    /// Base page size in bytes.
    page_bytes: u64,
    read_ahead_kb: u64,
    /// Latency of the machine profile.
    latency_ns: u64,
    /// The answer for each file that is read, the one that reads most first.
    files: Vec<FileEntry>,
    /// The answer for the whole program.
    answer: AnswerEntry,
    now: OutcomeEntry,
    tried: Vec<TriedEntry>,
    conditions: Vec<ConditionEntry>,
    /// What was measured; `null` where nothing was.
    check: Option<check::Entry<'a>>,
}

/// A file and its answer.
#[derive(Serialize, schemars::JsonSchema)]
struct FileEntry {
    name: String,
    contents: &'static str,
    pages_read: u64,
    pages_used: u64,
    answer: AnswerEntry,
}

/// An answer; positions are those in `tried`.
#[derive(Serialize, schemars::JsonSchema)]
struct AnswerEntry {
    /// What is best; `null` where nothing helps.
    best: Option<usize>,
    /// What may be as fast.
    ties: Vec<usize>,
    /// Whether it is no better than doing nothing at half or double the latency.
    ties_with_now: bool,
}

/// What a run of the model came to.
#[derive(Serialize, schemars::JsonSchema)]
struct OutcomeEntry {
    data_pages_read: u64,
    /// Of each file of the program.
    files: Vec<u64>,
    major_faults: u64,
    elapsed_ns: u64,
    elapsed_ns_at_half_latency: u64,
    elapsed_ns_at_double_latency: u64,
}

/// Something that was tried.
#[derive(Serialize, schemars::JsonSchema)]
struct TriedEntry {
    /// One, or two that were tried together.
    changes: Vec<String>,
    /// Whether it can be done on the kernel that is there.
    for_users: bool,
    /// `best`, `tied`, `helps`, `no change`, `slower` or `reads more`: of the whole program.
    verdict: &'static str,
    outcome: OutcomeEntry,
}

/// The answer under other conditions.
#[derive(Serialize, schemars::JsonSchema)]
struct ConditionEntry {
    name: String,
    /// `null` where the program does not run so, as what follows.
    now: Option<OutcomeEntry>,
    /// `null` too where nothing is the answer.
    answer: Option<OutcomeEntry>,
    /// What is best there; `null` where nothing is.
    best: Option<String>,
}

impl From<&Choice> for AnswerEntry {
    fn from(choice: &Choice) -> Self {
        match choice {
            Choice::Nothing => AnswerEntry { best: None, ties: Vec::new(), ties_with_now: false },
            Choice::Best { best, ties, ties_with_now } => {
                AnswerEntry { best: Some(*best), ties: ties.clone(), ties_with_now: *ties_with_now }
            }
        }
    }
}

impl From<&Outcome> for OutcomeEntry {
    fn from(outcome: &Outcome) -> Self {
        let [elapsed_ns, half, double] = outcome.ns.map(|ns| ns as u64);
        OutcomeEntry {
            data_pages_read: outcome.pages.iter().sum(),
            files: outcome.pages.clone(),
            major_faults: outcome.major_faults,
            elapsed_ns,
            elapsed_ns_at_half_latency: half,
            elapsed_ns_at_double_latency: double,
        }
    }
}

/// `study` as one object.
pub(super) fn json(study: &Study, words: &Words, footer: &Footer) -> String {
    let files = files(study).into_iter().map(|file| FileEntry {
        name: file.of.name.clone(),
        contents: file.of.contents.name(),
        pages_read: study.now.pages[file.file],
        pages_used: file.of.used_pages,
        answer: AnswerEntry::from(&file.choice),
    });
    let tried = study.trials.iter().enumerate().map(|(index, trial)| TriedEntry {
        changes: trial.changes.iter().map(super::Change::label).collect(),
        for_users: trial.is_for_users(),
        verdict: verdict(study, index),
        outcome: OutcomeEntry::from(&trial.outcome),
    });
    let condition = |condition: &Condition| {
        let under = condition.under.as_ref();
        ConditionEntry {
            name: condition.name.clone(),
            now: under.map(|under| OutcomeEntry::from(&under.now)),
            answer: under.and_then(|under| under.answer.as_ref()).map(OutcomeEntry::from),
            best: under.and_then(|under| under.best.clone()),
        }
    };
    to_json(&Json {
        schema: SCHEMA,
        footer,
        warnings: &study.warnings,
        name: &study.name,
        words: &words.lines,
        to_write: &words.written,
        governed: words.governed.as_deref(),
        page_bytes: study.page_bytes,
        read_ahead_kb: study.read_ahead_kb,
        latency_ns: study.latency_ns,
        files: files.collect(),
        answer: AnswerEntry::from(&answer(&study.now, &study.trials)),
        now: OutcomeEntry::from(&study.now),
        tried: tried.collect(),
        conditions: study.conditions.iter().map(condition).collect(),
        check: study.check.as_ref().map(|of| check::entry(study, of)),
    })
}

/// A row for the program as it is, and one for each trial.
pub(super) fn rows(study: &Study) -> Table {
    let names = [
        "tried",
        "pages_read",
        "major_faults",
        "elapsed_ns",
        "elapsed_ns_at_half_latency",
        "elapsed_ns_at_double_latency",
        "verdict",
    ];
    let row = |label: String, outcome: &Outcome, verdict: &str| {
        let entry = OutcomeEntry::from(outcome);
        let counts = [
            entry.data_pages_read,
            entry.major_faults,
            entry.elapsed_ns,
            entry.elapsed_ns_at_half_latency,
            entry.elapsed_ns_at_double_latency,
        ];
        let counts = counts.map(|count| count.to_string());
        [label].into_iter().chain(counts).chain([verdict.to_string()]).collect()
    };
    let trials = study.trials.iter().enumerate();
    let trials =
        trials.map(|(index, trial)| row(trial.label(), &trial.outcome, verdict(study, index)));
    Table {
        title: String::new(),
        columns: names.map(Head::left).to_vec(),
        rows: [row("as it is".to_string(), &study.now, "")].into_iter().chain(trials).collect(),
    }
}
