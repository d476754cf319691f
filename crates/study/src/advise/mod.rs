//! Advice for a program that reads too much.
//!
//! A [`AdviseBench`] tries each [`AdviceChange`] in the model, alone and in pairs. [`AdviseRecord`]
//! has the answer for each file, the code to write, and the conditions that would change the
//! answer. Changes that need a patched kernel are not tried.
//!
//! A change helps if it is faster by 5 %, or reads 5 % less in the same time. One that reads more
//! has to be faster by 10 %, at every latency. The fastest wins. Changes within 10 % of it, or
//! faster at half or double the latency, tie. Among ties the one that reads least is named, then
//! the one with the smallest scope: advice for one mapping before the governor, and that before a
//! size that affects every program.

mod answer;
mod apply;
mod bench;
mod candidates;
mod change;
pub mod check;
mod contents;
mod outcome;
mod record;
mod report;
mod rules;
mod source_changes;
#[cfg(test)]
mod tests;
mod words;

pub use self::bench::AdviseBench;
pub use self::change::{AdviceChange, AdviceTarget};
pub use self::contents::{FIRST_BYTES, FileContents};
pub use self::outcome::TrialOutcome;
pub use self::record::{AdviceTrial, AdviseRecord};
