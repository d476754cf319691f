//! A rule that is wrong.

use serde::{Deserialize, Serialize};

/// A rule that is wrong in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mutant {
    /// The place, among those of all files.
    pub site: usize,
    /// Which of its wrong ways, from 1.
    pub way: u8,
    /// The source file, from `crates/core/src/`.
    pub file: String,
    /// Its line there.
    pub line: usize,
    /// The function that it lies in.
    pub function: String,
    /// What is written there.
    pub before: String,
    /// What that becomes.
    pub after: String,
}
