//! What came out of an operation over folios.

use serde::{Deserialize, Serialize};

/// What came out of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolioSample {
    /// Folios that the memory takes.
    pub folios: u64,
    /// How many of these the kernel gave.
    pub given: u64,
    /// What the operation took; none where the kernel did not give enough of the folios.
    pub timing: Option<Timing>,
}

/// What an operation took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// CPU time of the thread that did it, in nanoseconds; the sum where several did.
    pub time_ns: u64,
    /// Pages that it was done to, by all.
    pub pages: u64,
    /// Pages that were written to and copied, where any were and the kernel tells frames.
    pub copied: Option<u64>,
    /// Pages that were written to and stayed where they were, where any were and it does.
    pub reused: Option<u64>,
}

impl FolioSample {
    /// Whether the kernel gave enough of the folios for times to be those of this size.
    pub(crate) fn is_enough(folios: u64, given: u64) -> bool {
        given * 100 >= folios * LEAST_PERCENT
    }
}

/// With a smaller share of the folios in percent, nothing is timed.
const LEAST_PERCENT: u64 = 99;
