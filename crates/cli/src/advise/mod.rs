//! Everything that one could do about a program, tried in the model: alone, and then in pairs.

mod advising;
mod apply;
mod candidates;
pub mod check;
mod order;
mod rule;
mod rules;
mod selected;
mod touched_pages;
mod trials;
mod writes;

pub use self::trials::study;
