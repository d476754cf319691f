//! A benchmark of mm operations over anonymous memory in folios of one size, with several mapcount
//! schemes.
//!
//! It is not a job: it has no files, memory limits or kernel rules, and its times are real.
//! [`FolioOpsSpec::validate`] resolves the options to [`FolioOps`].

mod operation;
mod record;
mod spec;

pub use crate::workload::FOLIO_OPS;

pub use operation::Operation;
pub use record::{FolioOpsRecord, FolioOpsRun, FolioOpsSample, OwnerCount, OwnerQuantity};
pub use spec::FolioOpsSpec;

/// Per-page mapcounts without owner tracking: the baseline.
pub const PAGE_MAPCOUNT: &str = "page-mapcount";

/// Non-atomic per-page mapcounts: the control.
pub const PLAIN_COUNTS: &str = "plain-counts";

/// Per-page mapcounts and two owner slots.
pub const MM_OWNER: &str = "mm-owner";

/// Two owner slots without per-page mapcounts.
pub const NO_PAGE_MAPCOUNT: &str = "no-page-mapcount";

/// Exact tracking of any number of owners, without per-page mapcounts.
pub const PRECISE_OWNERS: &str = "precise-owners";

/// The schemes implemented by `filemap`, in the order of tables.
pub const SCHEMES: [&str; 5] =
    [PAGE_MAPCOUNT, PLAIN_COUNTS, MM_OWNER, NO_PAGE_MAPCOUNT, PRECISE_OWNERS];

/// Size of a base page in bytes.
pub const PAGE_BYTES: u64 = 4096;

/// Size of the largest folio in bytes: mapped by one PMD entry.
pub const PMD_BYTES: u64 = 2 << 20;

/// The benchmark, with every option resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolioOps {
    /// Number of repeats, at least 1.
    pub runs: u64,
    /// Seed of the order of random writes, not 0.
    pub seed: u64,
    /// Size of the anonymous memory in bytes: a multiple of [`PMD_BYTES`].
    pub bytes: u64,
    /// Folio sizes in bytes, ascending, at least one.
    pub folio_bytes: Vec<u64>,
    /// Count owners without timing.
    pub owners: bool,
}

impl FolioOps {
    /// Number of base pages.
    pub fn pages(&self) -> u64 {
        self.bytes / PAGE_BYTES
    }
}
