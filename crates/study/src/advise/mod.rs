//! What one could do about a program that reads too much.
//!
//! A [`Study`] has what the model did with each [`Change`], alone and in pairs. [`Advice`] says
//! which of them is the answer for each file, what to write, and what would turn the answer around.

mod answer;
mod apply;
mod candidates;
mod change;
pub mod check;
mod contents;
mod order;
mod record;
mod report;
mod rules;
#[cfg(test)]
mod testing;
mod trial;
mod trials;
mod used_pages;
mod words;
mod writing;

pub use self::change::{Ask, Change, Target};
pub use self::contents::{Contents, FIRST_BYTES};
pub use self::record::{Advice, Study};
pub use self::rules::{OF_FILES, Rule};
pub use self::trial::{Outcome, Trial};
