//! The result of an operation over folios.

use serde::{Deserialize, Serialize};

/// The result of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolioSample {
    /// Number of folios that make up the memory.
    pub folios: u64,
    /// How many of them the kernel provided.
    pub given: u64,
    /// The timing; `None` if the kernel did not provide enough folios.
    pub timing: Option<Timing>,
}

/// The timing of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// CPU time of its threads in nanoseconds.
    pub time_ns: u64,
    /// Number of pages processed by all of them.
    pub pages: u64,
    /// Copied pages, for operations that write; `None` if frames are unknown.
    pub copied: Option<u64>,
    /// Reused pages, likewise.
    pub reused: Option<u64>,
}

impl FolioSample {
    /// Whether enough folios have the requested size.
    pub(crate) fn is_enough(folios: u64, given: u64) -> bool {
        given * 100 >= folios * MIN_PERCENT
    }
}

/// Minimum percentage of folios with the requested size.
const MIN_PERCENT: u64 = 99;
