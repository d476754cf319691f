//! A benchmark of operations over anonymous memory in folios of one size, with several mapcount
//! schemes.
//!
//! It is not a job over files: it has no limits and no rules, and its times are real.
//! [`FolioOpsSpec::validate`] resolves the options to [`FolioOps`].

mod operation;
mod record;
mod spec;

use crate::parts::EngineKind;
pub use crate::workload::FOLIO_OPS;

pub use operation::Operation;
pub use record::{
    ContendedFolio, FolioOpsRecord, FolioOpsRun, FolioOpsSample, OwnerCount, OwnerQuantity,
};
pub use spec::FolioOpsSpec;

/// Counts of pages, owners unknown: the base of comparisons.
pub const PAGE_MAPCOUNT: &str = "page-mapcount";

/// The same with non-atomic counts of pages: the control.
pub const PLAIN_COUNTS: &str = "plain-counts";

/// Counts of pages and two owner slots.
pub const MM_OWNER: &str = "mm-owner";

/// Two owner slots, without counts of pages.
pub const NO_PAGE_MAPCOUNT: &str = "no-page-mapcount";

/// Exact owners of any number of mms, without counts of pages.
pub const PRECISE_OWNERS: &str = "precise-owners";

/// The running kernel's own.
pub const KERNEL: &str = "kernel";

/// The schemes that `filemap` runs itself, in the order of tables.
pub const SCHEMES: [&str; 5] =
    [PAGE_MAPCOUNT, PLAIN_COUNTS, MM_OWNER, NO_PAGE_MAPCOUNT, PRECISE_OWNERS];

/// Bytes of a base page.
pub const PAGE_BYTES: u64 = 4096;

/// Bytes of the largest folio: one PMD entry maps as much.
pub const PMD_BYTES: u64 = 2 << 20;

/// The benchmark, with every option resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolioOps {
    /// The engine: `model` is the small mm of this program, in real time.
    pub engine: EngineKind,
    /// Recorded repeats, at least 1.
    pub runs: u64,
    /// Seed of the order of random writes, not 0.
    pub seed: u64,
    /// Bytes of anonymous memory: a multiple of [`PMD_BYTES`].
    pub bytes: u64,
    /// Sizes of the folios in bytes, ascending, at least one.
    pub folio_bytes: Vec<u64>,
    /// Count owners, and time nothing.
    pub owners: bool,
}

impl FolioOps {
    /// Base pages of the memory.
    pub fn pages(&self) -> u64 {
        self.bytes / PAGE_BYTES
    }
}
