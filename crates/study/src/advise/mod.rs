//! Advice for a program that reads too much.
//!
//! A [`AdviseBench`] tries each [`AdviceChange`] in the model, alone and in pairs. [`AdviseRecord`]
//! has the answer for each file, the code to write, and the conditions that would change the
//! answer. Changes that need a patched kernel are not tried.
//!
//! A file gets advice that the program can take for it. A disk has one readahead size, which is
//! chosen by the totals of all files, and named last, as every program on the disk gets it. Changes
//! worth less than 1 % of all pages and of the time are not named, and neither are files that the
//! loader, the C library or a runtime opens.
//!
//! A change helps if it is faster by 5 %, or reads 5 % less in the same time. One that reads more
//! has to be faster by 10 %, at every latency. The fastest wins. Changes within 10 % of it, or
//! faster at half or double the latency, tie. Among ties the one that reads least is named, then
//! the one with the smallest scope: advice for one mapping before the governor, and that before a
//! size that affects every program.

mod access_map;
mod answer;
mod apply;
mod bench;
mod candidates;
mod change;
pub mod check;
mod file_facts;
mod for_all;
mod libraries;
mod outcome;
mod program_facts;
mod record;
mod report;
mod rules;
mod source_changes;
#[cfg(test)]
mod tests;
mod unseen;
mod words;

pub use self::bench::AdviseBench;
pub use self::change::{AdviceChange, AdviceTarget};
pub use self::file_facts::{FileFacts, FileSelection};
pub use self::outcome::TrialOutcome;
pub use self::program_facts::ProgramFacts;
pub use self::record::{AdviceTrial, AdviseRecord, MostTouches, UnseenAdvice};
pub use filemap_job::file_contents::FileContents;
