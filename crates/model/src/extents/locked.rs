//! Pages that are still being read.

use std::collections::BTreeMap;

use filemap_core::cache::word_mask;
use filemap_core::units::PageIndex;

/// Runs of locked pages, no two of which overlap. A window that meets cached pages again and again
/// is as many runs, so that looking one up must not cost by their number.
#[derive(Debug, Default)]
pub struct Locked {
    /// The page behind each run, by its first.
    ends: BTreeMap<u64, u64>,
}

impl Locked {
    /// Locks the pages `from..end`, none of which is locked.
    pub fn insert(&mut self, from: u64, end: u64) {
        self.ends.insert(from, end);
    }

    /// Unlocks a run as it was locked.
    pub fn remove(&mut self, from: u64) {
        self.ends.remove(&from);
    }

    /// Whether any of the pages `from..end` is locked.
    pub fn any(&self, from: u64, end: u64) -> bool {
        self.before(end).next().is_some_and(|(_, stop)| stop > from)
    }

    /// The locked pages of `word`.
    pub fn mask(&self, word: u64) -> u64 {
        let (first, end) = (word * 64, word * 64 + 64);
        let among = self.before(end).take_while(|&(_, stop)| stop > first);
        among.fold(0, |mask, (from, stop)| mask | word_mask(word, PageIndex(from), PageIndex(stop)))
    }

    /// The runs that begin before `end`, the last one first.
    fn before(&self, end: u64) -> impl Iterator<Item = (u64, u64)> {
        self.ends.range(..end).rev().map(|(&from, &stop)| (from, stop))
    }
}
