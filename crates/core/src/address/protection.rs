//! Protection of mappings (`mprotect(2)`).

use serde::{Deserialize, Serialize};

/// Protection of part of a mapping, beyond read access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize)]
pub enum Protection {
    /// As mapped.
    #[default]
    AsMapped,
    /// Made writable, which it was not mapped as.
    Write,
    /// Made executable, which it was not mapped as.
    Exec,
    /// Unmapped (`munmap(2)`).
    Unmapped,
}

impl Protection {
    /// Every protection that `mprotect(2)` can set.
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
