//! What one could do about a program that reads too much.
//!
//! A [`Bench`] tries each [`Change`] in the model, alone and in pairs. [`Advice`] says which of
//! them is the answer for each file, what to write, and what would turn the answer around.

mod answer;
mod apply;
mod bench;
mod candidates;
mod change;
pub mod check;
mod contents;
mod order;
mod outcome;
mod record;
mod report;
mod rules;
#[cfg(test)]
mod testing;
mod used_pages;
mod words;
mod writing;
mod written;

pub use self::bench::Bench;
pub use self::change::{Ask, Change, Target};
pub use self::contents::{Contents, FIRST_BYTES};
pub use self::outcome::Outcome;
pub use self::record::{Advice, Tried};
pub use self::rules::{OF_FILES, Rule};
