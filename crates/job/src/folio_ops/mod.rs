//! Operations over anonymous memory in folios of one size, timed with several ways to count who
//! maps a folio.
//!
//! It is a benchmark and no job over files: it has no limits and no rules, and what is timed is
//! real. [`FolioOpsSpec::validate`] makes [`FolioOps`] of what was asked for.

mod counted;
mod operation;
mod record;
mod spec;

use crate::parts::EngineKind;
pub use crate::workload::FOLIO_OPS;

pub use counted::{About, Counted};
pub use operation::Operation;
pub use record::{Contended, FolioCell, FolioOpsRecord, FolioOpsRun};
pub use spec::FolioOpsSpec;

/// Counts of pages and no owners: what the others are compared with.
pub const PAGE_MAPCOUNT: &str = "page-mapcount";

/// The same with counts of pages that are not atomic: the control.
pub const PLAIN_COUNTS: &str = "plain-counts";

/// Counts of pages and two owner slots.
pub const MM_OWNER: &str = "mm-owner";

/// Two owner slots, and no counts of pages.
pub const NO_PAGE_MAPCOUNT: &str = "no-page-mapcount";

/// Exact owners for any number of mms, and no counts of pages.
pub const PRECISE_OWNERS: &str = "precise-owners";

/// The counters of the running kernel, whichever these are.
pub const KERNEL: &str = "kernel";

/// What runs here side by side, in the order of tables.
pub const CONFIGURATIONS: [&str; 5] =
    [PAGE_MAPCOUNT, PLAIN_COUNTS, MM_OWNER, NO_PAGE_MAPCOUNT, PRECISE_OWNERS];

/// Bytes of a base page.
pub const PAGE_BYTES: u64 = 4096;

/// Bytes of the largest folio: what one entry of a page middle directory maps.
pub const PMD_BYTES: u64 = 2 << 20;

/// What is timed, every value resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolioOps {
    /// The engine that is to run it: `model` is the small mm of this program, in real time.
    pub engine: EngineKind,
    /// Repeats that are recorded: 1 or more.
    pub runs: u64,
    /// Seed of the order of random writes: not 0.
    pub seed: u64,
    /// Bytes of anonymous memory: a multiple of [`PMD_BYTES`].
    pub bytes: u64,
    /// Sizes of the folios in bytes, ascending: at least one.
    pub folio_bytes: Vec<u64>,
    /// Count what is known of owners, and time nothing.
    pub owners: bool,
}

impl FolioOps {
    /// Base pages of the memory.
    pub fn pages(&self) -> u64 {
        self.bytes / PAGE_BYTES
    }
}
