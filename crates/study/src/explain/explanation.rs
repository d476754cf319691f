//! What a decision log says of a job.

use super::counter::Misses;
use super::courses::Courses;
use super::map::Map;
use super::origin::{Amount, Brought, PerOrigin};

/// What a decision log says of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Pages of all files that entered the cache, by origin; a page counts each time.
    pub amounts: PerOrigin<Amount>,
    /// The same pages by what brought them in.
    pub brought: PerOrigin<Brought>,
    /// The amounts of each file.
    pub files: Vec<PerOrigin<Amount>>,
    /// What was brought in by touches of each mapping; of a program of one thread.
    pub mappings: Vec<PerOrigin<Brought>>,
    /// What was brought in by reads of each open file; of a program of one thread.
    pub opens: Vec<PerOrigin<Brought>>,
    /// Whether accesses are told from each other, so that pages that were accessed are told from
    /// others.
    pub knows_accesses: bool,
    /// Pages that left the cache, as far as the log shows it.
    pub evicted: u64,
    /// Accesses to pages that the log does not show to be in: 0 for a complete log.
    pub absent_accesses: u64,
    /// What moved the counter of misses; of a job of one file.
    pub misses: Option<Misses>,
    /// Which pages came in, were accessed, and left; of a job of one file.
    pub map: Option<Map>,
    /// When pages came in, and which of them were used.
    pub history: Option<Courses>,
}

impl Explanation {
    /// Pages that entered the cache.
    pub fn pages_read(&self) -> u64 {
        self.amounts.iter().map(|(_, amount)| amount.pages).sum()
    }
}
