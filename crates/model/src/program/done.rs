//! Steps of threads: which one it is, and what it did.

use crate::tally::Tally;

/// Which step of which thread it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) thread: usize,
    pub(super) process: usize,
    pub(super) step: usize,
}

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// What it counted.
    pub tally: Tally,
    /// Predicted time.
    pub elapsed_ns: u64,
    /// The counter of misses of its open file when it ended last.
    pub mmap_miss: u16,
}

impl Done {
    /// Adds what it did in one round.
    pub fn add(&mut self, tally: &Tally, elapsed_ns: u64, mmap_miss: u16) {
        self.mmap_miss = mmap_miss;
        self.tally = self.tally.with(tally);
        self.elapsed_ns += elapsed_ns;
    }
}
