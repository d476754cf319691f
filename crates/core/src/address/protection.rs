//! What a mapping may be used for besides reading (`mprotect(2)`).

use serde::{Deserialize, Serialize};

/// What a part of a mapping may be used for, besides reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize)]
pub enum Protection {
    /// What it was mapped for.
    #[default]
    AsMapped,
    /// To be written to as well, which it was not mapped for.
    Write,
    /// To be executed as well, which it was not mapped for.
    Exec,
    /// For nothing: it was taken away (`munmap(2)`).
    Unmapped,
}

impl Protection {
    /// Every one that `mprotect(2)` can ask for.
    pub const ALL: [Protection; 3] = [Protection::AsMapped, Protection::Write, Protection::Exec];

    /// The name in job files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Protection::AsMapped => "as-mapped",
            Protection::Write => "write",
            Protection::Exec => "exec",
            Protection::Unmapped => "unmapped",
        }
    }
}
