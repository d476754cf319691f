//! What is observed of a run.

use filemap_core::decision::Decision;
use filemap_job::Seen;

use crate::image::Incident;

/// What was observed of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// What this kernel shows.
    pub shown: Seen,
    /// The kernel's decisions about all files of the job, as far as tracepoints show them. They do
    /// not name the cause of a window: what no mark and no stream asked for is that of a fault in
    /// an executable or HUGEPAGE mapping where it is in one, else read-around. `mmap_miss` is that
    /// of [`Decision::Entered`]; elsewhere it is not shown, and 0. A look-up missed where something
    /// was read for it. On a kernel that shows no call of readahead a window is what was added at
    /// once, one page after the other, and its mark is not shown.
    pub decisions: Vec<Decision>,
    /// Bytes fetched from storage on the child's behalf, where the kernel accounts that.
    pub read_bytes: Option<u64>,
    /// How long the accesses took, traced.
    pub elapsed_ns: u64,
    /// Pages of the files that others evicted meanwhile.
    pub evicted_by_others: u64,
    /// Runs that were thrown away for this one because others took or added pages.
    pub repeated: u32,
    /// What a kernel that was booted for it warned of meanwhile.
    pub warnings: Vec<Incident>,
}
