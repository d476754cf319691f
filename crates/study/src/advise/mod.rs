//! Advice for a program that reads too much.
//!
//! A [`Bench`] tries each [`Change`] in the model, alone and in pairs. [`Advice`] has the answer
//! for each file, the code to write, and the conditions that would change the answer. Changes that
//! need a patched kernel are not tried.
//!
//! A change helps if it reads less or is faster by 5 %, and neither slower nor reads more by as
//! much. The fastest wins. Changes within 10 % of it, or faster at half or double the latency, tie.
//! Among ties the one that reads least is named, then the one with the smallest scope: advice for
//! one mapping before the governor, and that before a size that affects every program.

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
#[cfg(test)]
mod tests;
mod words;
mod writing;

pub use self::bench::Bench;
pub use self::change::{Change, Target};
pub use self::contents::{Contents, FIRST_BYTES};
pub use self::outcome::Outcome;
pub use self::record::{Advice, Tried};
