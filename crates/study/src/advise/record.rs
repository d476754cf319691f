//! Record of advice.

use filemap_job::record::RecordKind;
use serde::{Deserialize, Serialize};

use super::access_map::AccessMap;
use super::answer::{Answer, Candidate, TIE_SHARE, TrialFigures};
use super::check::Check;
use super::source_changes::SourceChange;
use super::{AdviceChange, FileContents, ProgramFacts, TrialOutcome};
use crate::footer::Footer;
use crate::json::in_one_line;

/// Record of `filemap advise`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct AdviseRecord {
    pub schema: u32,
    /// What the record is of.
    pub kind: RecordKind,
    #[serde(flatten)]
    pub footer: Footer,
    /// Warnings, each a sentence without a full stop.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Name of the recording or job file.
    #[serde(default)]
    pub name: String,
    /// The answer in words: for each file, and for the program.
    #[serde(default)]
    pub words: Vec<String>,
    /// Code or settings that implement the answer.
    #[serde(default)]
    pub to_write: Vec<SourceChange>,
    /// Effect of `filemap govern`, if it helps.
    pub governed: Option<String>,
    /// The share of the files that is cached when a run begins: `cold`.
    #[serde(default)]
    pub start: String,
    /// Base page size in bytes.
    pub page_bytes: u64,
    pub read_ahead_kb: u64,
    /// The program, if it was recorded; not serialized.
    #[serde(skip)]
    pub(super) program: Option<ProgramFacts>,
    /// Latency of the machine profile in nanoseconds.
    pub latency_ns: u64,
    /// The machine profile in words.
    #[serde(default)]
    pub machine: String,
    /// A sentence on how far its predictions were off; empty if that is unknown.
    #[serde(default)]
    pub known_error: String,
    /// Distinct pages used of all files.
    #[serde(default)]
    pub pages_used: u64,
    /// The other end of every figure if touches may be missing from the recording; `null`
    /// otherwise.
    #[serde(default)]
    pub unseen: Option<UnseenAdvice>,
    /// The answer for each file, the most read first.
    pub files: Vec<FileAdvice>,
    /// Files that were read but get no answer. They count in all totals.
    #[serde(default)]
    pub left_out: Vec<LeftOutFile>,
    /// The devices of the files that count, as far as they are known.
    #[serde(default)]
    pub read_ahead_devices: Vec<ReadAheadDevice>,
    /// Where and when the program accesses the files with an answer, in the model.
    #[serde(default, serialize_with = "in_one_line")]
    #[schemars(with = "Vec<AccessMap>")]
    pub accesses: Vec<AccessMap>,
    /// The answer for the whole program.
    pub answer: Answer,
    pub now: TrialOutcome,
    pub tried: Vec<AdviceTrial>,
    #[serde(default)]
    pub conditions: Vec<AdviceCondition>,
    /// Measured check of the answer; `null` without `--check`.
    pub check: Option<Check>,
}

/// Touches that the recorder may have missed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct UnseenAdvice {
    /// The maximum number of pages that were touched unseen.
    pub pages: u64,
    /// Whether the answer depends on them, so that none is given.
    pub is_decisive: bool,
    /// What holds if all of them were touched; `null` if it is not known which they are.
    pub most: Option<MostTouches>,
}

/// What holds if the program touched all pages that it may have touched unseen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MostTouches {
    /// Distinct pages used.
    pub pages_used: u64,
    /// The outcome without a change.
    pub now: TrialOutcome,
    /// The outcome with the best change of the program; `null` if nothing helps.
    pub answer: Option<TrialOutcome>,
    /// The best change of the program; `null` if nothing helps.
    pub best: Option<String>,
}

/// A file and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileAdvice {
    pub name: String,
    pub contents: FileContents,
    pub pages_read: u64,
    /// Distinct pages used.
    pub pages_used: u64,
    pub answer: Answer,
    /// Index in the job; not serialized.
    #[serde(skip)]
    pub(super) number: usize,
}

/// A file without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct LeftOutFile {
    pub name: String,
    pub contents: FileContents,
    pub pages_read: u64,
}

/// A device whose readahead size can be set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReadAheadDevice {
    /// The disk, such as `vda`, or the filesystem.
    pub device: String,
    /// The file of sysfs that sets it.
    pub setting: String,
    /// Number of files of the program on it.
    pub files: usize,
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct AdviceTrial {
    /// One change, or two tried together.
    pub changes: Vec<String>,
    /// `best`, `tied`, `helps`, `no change`, `slower` or `reads more`, for the whole program.
    pub verdict: String,
    pub outcome: TrialOutcome,
    /// The changes themselves; not serialized.
    #[serde(skip)]
    pub does: Vec<AdviceChange>,
}

/// The answer under another condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AdviceCondition {
    /// The condition, such as `read_ahead_kb=128`.
    pub name: String,
    /// Outcome without a change; this and the following are `null` if the program cannot run.
    pub now: Option<TrialOutcome>,
    /// Outcome with the answer; `null` if there is none.
    pub answer: Option<TrialOutcome>,
    /// The best change there; `null` if nothing helps.
    pub best: Option<String>,
}

impl AdviceTrial {
    /// A trial of the changes `does` with its outcome.
    pub(super) fn new(does: Vec<AdviceChange>, outcome: TrialOutcome) -> Self {
        AdviceTrial {
            changes: does.iter().map(AdviceChange::label).collect(),
            verdict: String::new(),
            outcome,
            does,
        }
    }

    /// Label of the changes.
    pub fn label(&self) -> String {
        self.changes.join(" + ")
    }

    /// The candidate for [`Answer::among`]; pairs have a larger scope than any single change.
    fn candidate(&self, at: usize, figures: TrialFigures) -> Candidate {
        let more = self.does.len().saturating_sub(1) as u32;
        let reach = self.does.iter().map(AdviceChange::reach).sum::<u32>() + 10 * more;
        Candidate { at, figures, reach }
    }

    /// Whether it has a setting that affects every program.
    pub(super) fn is_for_all(&self) -> bool {
        self.does.iter().any(AdviceChange::is_for_all)
    }

    /// Whether it affects no file other than `file`.
    pub(super) fn is_about(&self, file: usize) -> bool {
        self.does.iter().all(|change| change.file().is_none_or(|number| number == file))
    }
}

impl AdviseRecord {
    /// The best trial, if any helps.
    pub fn best(&self) -> Option<&AdviceTrial> {
        self.tried.get(self.answer.best?)
    }

    /// The answer for the whole program among the trials that `wanted` accepts by index.
    pub fn answer_among(&self, wanted: impl Fn(usize) -> bool) -> Answer {
        let wanted = self.tried.iter().enumerate().filter(|(at, _)| wanted(*at));
        let candidates = wanted.map(|(at, tried)| tried.candidate(at, tried.outcome.figures()));
        Answer::choose(self.now.figures(), candidates)
    }

    /// The answer for one file, among the changes that the program or its owner makes for it alone.
    pub(super) fn file_answer(&self, file: usize) -> Answer {
        let is_own = |tried: &AdviceTrial| {
            tried.does.len() == 1
                && tried.is_about(file)
                && !tried.is_for_all()
                && tried.outcome.is_worth_naming(&self.now)
        };
        let own = self.tried.iter().enumerate().filter(|(_, tried)| is_own(tried));
        let candidates =
            own.map(|(at, tried)| tried.candidate(at, tried.outcome.file_figures(file)));
        Answer::choose(self.now.file_figures(file), candidates)
    }

    /// The best readahead size for all files together: of those that are about as fast as the
    /// fastest at the latency of the profile, the one that reads least. None if no file gets an
    /// answer: libraries and locales are no reason to change a device.
    pub(super) fn read_ahead_answer(&self) -> Answer {
        if self.files.is_empty() {
            return Answer::default();
        }
        let is_size = |at: &usize| matches!(self.tried[*at].does[..], [AdviceChange::ReadAhead(_)]);
        let sizes: Vec<usize> = (0..self.tried.len()).filter(is_size).collect();
        let time = |at: &usize| self.tried[*at].outcome.elapsed_ns as f64;
        let fastest = sizes.iter().map(time).fold(f64::INFINITY, f64::min);
        let is_fast = |at: usize| time(&at) <= fastest * (1.0 + TIE_SHARE);
        self.answer_among(|at| sizes.contains(&at) && is_fast(at))
    }

    /// The answer for the whole program and machine. It has no other readahead size than
    /// [`AdviseRecord::read_ahead_answer`].
    pub(super) fn whole_answer(&self) -> Answer {
        let size = self.read_ahead_answer().best;
        let is_other_size =
            |at: usize| matches!(self.tried[at].does[..], [AdviceChange::ReadAhead(_)]);
        self.answer_among(|at| !is_other_size(at) || size == Some(at))
    }

    /// The answer without settings that affect every program.
    pub(super) fn own_answer(&self) -> Answer {
        self.answer_among(|at| !self.tried[at].is_for_all())
    }
}
