//! The course of a run, as its record has it.
//!
//! Of a program the six files that are read most have a history each. The run before says which
//! they are. They share the axis of the program's accesses, and together list as many windows as
//! one file. Each open file description has a counter of misses of its own: of those of a file the
//! one that changed most is shown. A program with a `count` has no course, as its record has sums
//! of many files.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::history::{History, MOST_COUNTED, MOST_KEPT};
use super::origin::Origin;

/// Files that have a history of their own.
pub(super) const MOST_FILES: usize = 6;

/// Threads whose waits are told one by one.
pub(super) const MOST_THREADS: usize = 64;

/// The course of a run.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Courses {
    /// Of a job of flags: that of its file.
    OneFile(Box<History>),
    /// Of a job with tables: those of its files.
    Files(Box<ProgramHistory>),
}

impl Courses {
    /// Whether its numbers can be drawn: a record may have come from elsewhere.
    fn is_sound(&self) -> bool {
        match self {
            Courses::OneFile(history) => history.is_sound(),
            Courses::Files(history) => history.is_sound(),
        }
    }
}

/// Only what can be drawn is read.
impl<'de> Deserialize<'de> for Courses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let courses = match value.get("files") {
            None => serde_json::from_value(value).map(Courses::OneFile),
            Some(_) => serde_json::from_value(value).map(Courses::Files),
        };
        let courses = courses.map_err(D::Error::custom)?;
        if courses.is_sound() {
            Ok(courses)
        } else {
            Err(D::Error::custom("its history contradicts itself"))
        }
    }
}

/// The course of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProgramHistory {
    /// Accesses of all threads. Interval `i` of `n` begins with access `i * accesses / n`, rounded
    /// up.
    pub accesses: u64,
    /// The files of which most is read, the most first.
    pub files: Vec<FileHistory>,
    /// Other files of which something is read.
    pub other_files: u64,
    /// What threads waited for: a cause as in `brought_in` of `explain`, by which the page came
    /// that was waited for, or `other-files`, `memory`, `cpu`, `phase` or `lock`.
    pub waits: Vec<WaitHistory>,
    /// The threads, or the first of many.
    pub threads: Vec<ThreadWaits>,
}

/// The course of one file of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileHistory {
    /// The file.
    pub name: String,
    /// The open file description whose counter `mmap_miss` of the history is: the one of the file
    /// that changes it most. `null` where none does.
    pub counter_of: Option<String>,
    /// Its history, in which accesses are those of the program.
    pub history: History,
}

/// What was waited for, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WaitHistory {
    /// What was waited for.
    pub cause: String,
    /// Nanoseconds in each interval, of all threads together.
    pub ns: Vec<u64>,
}

/// How long a thread waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThreadWaits {
    /// The thread.
    pub name: String,
    /// Nanoseconds in all, by `waits` in its order.
    pub ns: Vec<u64>,
}

impl ProgramHistory {
    /// Whether its numbers can be drawn: a record may have come from elsewhere.
    fn is_sound(&self) -> bool {
        let intervals = self.waits.first().map_or(1, |first| first.ns.len());
        let of_waits = self.waits.iter().flat_map(|of| &of.ns);
        let of_threads = self.threads.iter().flat_map(|of| &of.ns);
        let mut all = of_waits.chain(of_threads).chain([&self.accesses]);
        self.files.len() <= MOST_FILES
            && self.waits.len() <= MOST_CAUSES
            && self.threads.len() <= MOST_THREADS
            && (1..=MOST_KEPT).contains(&intervals)
            && self.files.iter().all(|file| file.history.is_sound())
            && self.waits.iter().all(|of| of.ns.len() == intervals)
            && self.threads.iter().all(|of| of.ns.len() == self.waits.len())
            && all.all(|&value| value <= MOST_COUNTED)
    }
}

/// What can be waited for.
const MOST_CAUSES: usize = Origin::ALL.len() + 3;
