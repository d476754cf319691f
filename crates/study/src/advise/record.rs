//! The record of what was tried, and what is said of it.

use serde::{Deserialize, Serialize};

use super::answer::{Answer, Candidate, Figures};
use super::check::Check;
use super::writing::Written;
use super::{Change, Contents, Outcome};
use crate::footer::Footer;

/// What would help a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
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
    /// Each counted once.
    pub pages_used: u64,
    pub answer: Answer,
    /// Its number in the program, while it is studied.
    #[serde(skip)]
    pub(super) number: usize,
}

/// Something that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Tried {
    /// One, or two that were tried together.
    pub changes: Vec<String>,
    /// `best`, `tied`, `helps`, `no change`, `slower` or `reads more`: of the whole program.
    pub verdict: String,
    pub outcome: Outcome,
    /// The changes themselves, while the program is studied.
    #[serde(skip)]
    pub does: Vec<Change>,
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

impl Tried {
    /// What comes to `outcome`.
    pub(super) fn new(does: Vec<Change>, outcome: Outcome) -> Self {
        Tried {
            changes: does.iter().map(Change::label).collect(),
            verdict: String::new(),
            outcome,
            does,
        }
    }

    /// What was changed, in words.
    pub fn label(&self) -> String {
        self.changes.join(" + ")
    }

    /// For the choice among several; pairs are more to do than anything alone.
    fn candidate(&self, at: usize, figures: Figures) -> Candidate {
        let more = self.does.len().saturating_sub(1) as u32;
        let reach = self.does.iter().map(Change::reach).sum::<u32>() + 10 * more;
        Candidate { at, figures, reach }
    }

    /// Whether nothing of it is about another file than this one.
    pub(super) fn is_about(&self, file: usize) -> bool {
        self.does.iter().all(|change| change.file().is_none_or(|of| of == file))
    }
}

impl Advice {
    /// What is best, if anything is.
    pub fn best(&self) -> Option<&Tried> {
        self.tried.get(self.answer.best?)
    }

    /// The answer for the whole program among what is `wanted`, by positions in `tried`.
    pub fn answer_among(&self, wanted: impl Fn(usize) -> bool) -> Answer {
        let wanted = self.tried.iter().enumerate().filter(|(at, _)| wanted(*at));
        let candidates = wanted.map(|(at, tried)| tried.candidate(at, tried.outcome.figures()));
        Answer::among(self.now.figures(), candidates)
    }

    /// The answer for one file: among changes of this file alone and of everything.
    pub(super) fn answer_of(&self, file: usize) -> Answer {
        let is_own = |tried: &Tried| tried.does.len() == 1 && tried.is_about(file);
        let own = self.tried.iter().enumerate().filter(|(_, tried)| is_own(tried));
        let candidates = own.map(|(at, tried)| tried.candidate(at, tried.outcome.of_file(file)));
        Answer::among(self.now.of_file(file), candidates)
    }
}
