//! Everything that one could do about a program, tried in the model: alone, and then in pairs.

mod apply;
mod candidates;
mod trials;
mod used;

pub use self::trials::study;
