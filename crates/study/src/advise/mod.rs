//! What one could do about a program that reads too much.
//!
//! A [`Bench`] tries each [`Change`] in the model, alone and in pairs. [`Advice`] says which of
//! them is the answer for each file, what to write, and what would turn the answer around. What it
//! takes a patched kernel to do is not tried: advice is for who has the kernel that runs.
//!
//! Something helps that reads less or is faster by 5 %, and is neither slower nor reads more by as
//! much. The fastest wins. What is within 10 % of it, or is faster at half or double the latency,
//! is tied with it. Of these the one that reads least is named, and then the one that reaches least
//! far: advice for one mapping before a governed program, and that before a size that every
//! program on the machine gets.

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
