//! The record of what was tried, and what is said of it.

use filemap_job::record::SCHEMA;
use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::check::Check;
use super::trial::{Outcome, Trial};
use super::words::{self, Written};
use super::{Change, Contents};
use crate::footer::Footer;

/// What would help a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Advice {
    pub schema: u32,
    #[serde(flatten)]
    pub footer: Footer,
    /// What a reader should know, a sentence each without its full stop.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// What the recording or job file is called.
    #[serde(default)]
    pub name: String,
    /// The answer in words: what helps each file, and what is best together.
    #[serde(default)]
    pub words: Vec<String>,
    /// What to write for it.
    #[serde(default)]
    pub to_write: Vec<Written>,
    /// What `filemap govern` does for it, where that helps.
    pub governed: Option<String>,
    /// Base page size in bytes.
    pub page_bytes: u64,
    pub read_ahead_kb: u64,
    /// Latency of the machine profile.
    pub latency_ns: u64,
    /// The answer for each file that is read, the one that reads most first.
    pub files: Vec<FileAdvice>,
    /// The answer for the whole program.
    pub answer: Answer,
    pub now: Outcome,
    pub tried: Vec<Tried>,
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// What was measured; `null` where nothing was.
    pub check: Option<Check>,
}

/// A file and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileAdvice {
    pub name: String,
    pub contents: Contents,
    pub pages_read: u64,
    pub pages_used: u64,
    pub answer: Answer,
}

/// Something that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tried {
    /// One, or two that were tried together.
    pub changes: Vec<String>,
    /// Whether it can be done on the kernel that is there.
    pub for_users: bool,
    /// `best`, `tied`, `helps`, `no change`, `slower` or `reads more`: of the whole program.
    pub verdict: String,
    pub outcome: Outcome,
}

/// The answer under other conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Condition {
    /// What is otherwise, such as `read_ahead_kb=128`.
    pub name: String,
    /// `null` where the program does not run so, as what follows.
    pub now: Option<Outcome>,
    /// `null` too where nothing is the answer.
    pub answer: Option<Outcome>,
    /// What is best there; `null` where nothing is.
    pub best: Option<String>,
}

/// What was tried for a program, before it is said what follows from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Study {
    /// Its files.
    pub files: Vec<FileUse>,
    /// What it costs as it is.
    pub now: Outcome,
    /// What was tried, alone first.
    pub trials: Vec<Trial>,
    /// The same under other conditions.
    pub conditions: Vec<Condition>,
    /// Base page size in bytes.
    pub page_bytes: u64,
    /// Readahead size of what was tried, in KiB.
    pub read_ahead_kb: u64,
    /// Latency of the machine profile in nanoseconds.
    pub latency_ns: u64,
}

/// A file of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUse {
    pub name: String,
    /// Pages of it that the program touches or reads, each counted once.
    pub used_pages: u64,
    pub contents: Contents,
}

/// Files of which less than this share of all pages are read count for nothing.
const LEAST_FILE_SHARE: f64 = 0.01;

impl Outcome {
    /// The files that count, the one that is read most first.
    pub fn files_that_count(&self) -> Vec<usize> {
        let least = self.data_pages_read as f64 * LEAST_FILE_SHARE;
        let counts = |file: &usize| self.files[*file] > 0 && self.files[*file] as f64 >= least;
        let mut files: Vec<usize> = (0..self.files.len()).filter(counts).collect();
        files.sort_by_key(|file| std::cmp::Reverse(self.files[*file]));
        files
    }
}

impl Study {
    /// The answer for the whole program.
    pub fn answer(&self) -> Answer {
        self.answer_among(|_| true)
    }

    /// The answer among the trials that are `wanted`, by their positions.
    pub fn answer_among(&self, wanted: impl Fn(usize) -> bool) -> Answer {
        Answer::for_users(self.now.figures(), &self.trials, Outcome::figures, |at, _| wanted(at))
    }

    /// The answer for one file: among changes of this file alone and of everything.
    fn answer_of(&self, file: usize) -> Answer {
        let of_file = |outcome: &Outcome| outcome.of_file(file);
        let is_own = |_, trial: &Trial| trial.changes.len() == 1 && trial.is_about(file);
        Answer::for_users(self.now.of_file(file), &self.trials, of_file, is_own)
    }

    /// What follows for the program that is called `name`. `program` has its arguments, ready for a
    /// shell, where they are known.
    pub fn advice(self, name: &str, program: Option<&str>) -> Advice {
        let file = |file: usize| {
            let FileUse { name, used_pages, contents } = self.files[file].clone();
            let pages_read = self.now.files[file];
            let answer = self.answer_of(file);
            (file, FileAdvice { name, contents, pages_read, pages_used: used_pages, answer })
        };
        let files: Vec<(usize, FileAdvice)> =
            self.now.files_that_count().into_iter().map(file).collect();
        let answer = self.answer();
        let tried = |(at, trial): (usize, &Trial)| Tried {
            changes: trial.labels(),
            for_users: trial.is_for_users(),
            verdict: answer.verdict(at, trial.outcome.figures(), self.now.figures()).to_string(),
            outcome: trial.outcome.clone(),
        };
        Advice {
            schema: SCHEMA,
            name: name.to_string(),
            words: words::lines(&self, &files, &answer),
            to_write: words::written(&self, &files, &answer),
            governed: words::governed(&self, program.unwrap_or("PROGRAM")),
            page_bytes: self.page_bytes,
            read_ahead_kb: self.read_ahead_kb,
            latency_ns: self.latency_ns,
            tried: self.trials.iter().enumerate().map(tried).collect(),
            files: files.into_iter().map(|(_, file)| file).collect(),
            answer,
            now: self.now,
            conditions: self.conditions,
            ..Advice::default()
        }
    }
}

impl Trial {
    /// Whether it is this change alone.
    pub(super) fn is_only(&self, change: &Change) -> bool {
        matches!(self.changes.as_slice(), [only] if only == change)
    }
}
