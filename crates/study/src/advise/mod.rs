//! The report on what one could do about a program that reads too much.
//!
//! A [`Study`] has what the model did with each [`Change`], alone and in pairs. The report says
//! first which of them is the answer for each file, then what to write, then all that was tried,
//! and what would turn the answer around.

mod answer;
mod change;
pub mod check;
mod choice;
mod contents;
mod data;
mod tables;
mod writing;

use filemap_job::Record;

pub use self::change::{Change, Target};
pub use self::check::Check;
pub use self::choice::{Beside, Choice, Figures, LATENCIES, Tried, choose};
pub use self::contents::{Contents, FIRST_BYTES};
pub(crate) use self::data::Json;
use crate::footer::Footer;
use filemap_report::{Part, Report};

/// What was tried for a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// What the recording or job file is called.
    pub name: String,
    /// The program and its arguments, ready for a shell, where they are known.
    pub program: Option<String>,
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
    /// What a reader should know, a sentence each without its full stop.
    pub warnings: Vec<String>,
    /// What was measured, if anything was.
    pub check: Option<Check>,
}

/// A file of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUse {
    /// Its name.
    pub name: String,
    /// Pages of it that the program touches or reads, each counted once.
    pub used_pages: u64,
    /// What kind it is.
    pub contents: Contents,
}

/// What a run of the model came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Pages read, of each file.
    pub pages: Vec<u64>,
    /// Major faults.
    pub major_faults: u64,
    /// Nanoseconds, at each of [`LATENCIES`].
    pub ns: [f64; 3],
}

impl Outcome {
    /// All that was read, and the time.
    pub fn figures(&self) -> Figures {
        Figures { pages: self.pages.iter().sum::<u64>() as f64, ns: self.ns }
    }

    /// What was read of one file, and the time of the whole program.
    fn of_file(&self, file: usize) -> Figures {
        Figures { pages: self.pages[file] as f64, ns: self.ns }
    }
}

/// One or more changes, and what came of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// What was changed.
    pub changes: Vec<Change>,
    /// What came out.
    pub outcome: Outcome,
}

impl Trial {
    /// What was changed, in words.
    pub fn label(&self) -> String {
        self.changes.iter().map(Change::label).collect::<Vec<_>>().join(" + ")
    }

    /// For [`choose`]: pairs are more to do than anything alone.
    pub fn tried(&self) -> Tried {
        let reach = self.changes.iter().map(Change::reach).sum::<u32>();
        Tried { figures: self.outcome.figures(), reach: reach + 10 * self.more() }
    }

    fn more(&self) -> u32 {
        self.changes.len().saturating_sub(1) as u32
    }

    /// Whether a user can do it on the kernel that is there.
    pub fn is_for_users(&self) -> bool {
        self.changes.iter().all(Change::is_for_users)
    }
}

/// The answer under a condition, such as half the memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// What is otherwise, such as `memory limit 64m`.
    pub name: String,
    /// What the model did; nothing where it cannot run the program so.
    pub under: Option<Under>,
}

/// What the model did under a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Under {
    /// Without any change.
    pub now: Outcome,
    /// With the answer, where there is one.
    pub answer: Option<Outcome>,
    /// What is best there, if anything is.
    pub best: Option<String>,
}

/// The trial that answers for all of `trials`, as an index, if any does, with its ties.
pub fn answer(now: &Outcome, trials: &[Trial]) -> Choice {
    answer_among(now, trials, |_| true)
}

/// The same among those of `trials` that are `wanted`, as indexes of all.
pub fn answer_among(now: &Outcome, trials: &[Trial], wanted: impl Fn(usize) -> bool) -> Choice {
    let open = (0..trials.len()).filter(|index| trials[*index].is_for_users() && wanted(*index));
    let tried = |trial: &Trial| trial.tried();
    among_these(now.figures(), trials, open.collect(), tried).unwrap_or(Choice::Nothing)
}

/// [`choose`] among those of `trials` that a user can do.
fn among(now: Figures, trials: &[Trial], tried: impl Fn(&Trial) -> Tried) -> Option<Choice> {
    let open = (0..trials.len()).filter(|index| trials[*index].is_for_users()).collect();
    among_these(now, trials, open, tried)
}

fn among_these(
    now: Figures,
    trials: &[Trial],
    open: Vec<usize>,
    tried: impl Fn(&Trial) -> Tried,
) -> Option<Choice> {
    let figures: Vec<Tried> = open.iter().map(|index| tried(&trials[*index])).collect();
    match choose(now, &figures) {
        Choice::Nothing => None,
        Choice::Best { best, ties, ties_with_now } => Some(Choice::Best {
            best: open[best],
            ties: ties.into_iter().map(|tie| open[tie]).collect(),
            ties_with_now,
        }),
    }
}

/// The report on `study` of a program, of which `record` is a run, and which `command` repeats.
pub fn report(study: &Study, record: &Record, command: String) -> Report {
    let footer = Footer::new(std::slice::from_ref(record), command);
    let words = answer::words(study);
    let json = data::json(study, &words, &footer);
    let mut parts = vec![Part::Heading(format!("What would help {}", study.name))];
    parts.extend(answer::parts(&words));
    parts.extend(study.check.iter().flat_map(|check| check::parts(study, check)));
    parts.push(Part::Heading("What was tried in the model".to_string()));
    parts.push(Part::Table(tables::tried(study)));
    parts.push(Part::Paragraph(tables::note(study)));
    if !study.conditions.is_empty() {
        parts.push(Part::Heading("What would break it".to_string()));
        parts.push(Part::Table(tables::conditions(study)));
    }
    parts.extend(Part::warnings(&study.warnings));
    Report { parts, rows: data::rows(study), footer: footer.footer(), json }
}
