//! The governor: takes the readahead of file mappings over from the kernel.
//!
//! Processes are followed from outside (`filemap-attach`). Large read-only file mappings are
//! advised MADV_RANDOM, so that a fault reads a single page; everything else is read ahead as
//! `filemap-policy` decides, with fadvise(2) on a descriptor of this process. Where the kernel's
//! own readahead is cheaper, the advice is restored. None of this changes what a program computes.
//!
//! The first time that a file is mapped it is only watched, and what was touched is remembered in a
//! [`HistoryStore`]. From then on it is governed as `filemap-policy` plans from that.
//!
//! The module `governor` makes the decisions: events go in, requests come out. [`GovernorSession`]
//! executes them in its own threads.
//!
//! The [`recorder`] advises the mappings that it records in the same way, with the same journal.
//! [`AdviceEnforcer`] applies fixed rules instead of a policy.

mod advisor;
mod costs;
mod decision;
mod device_times;
mod enforcer;
mod file;
mod governing;
mod governor;
mod history_format;
mod history_store;
mod journal;
mod memory;
mod metrics;
mod output_directory;
mod prefetch;
mod process;
mod range;
mod reader;
pub mod readiness;
mod recorded;
pub mod recorder;
mod release;
mod request;
mod requested_pages;
pub mod run_directory;
mod settings;
mod statistics;

pub use enforcer::{AdviceEnforcer, AdviceRule, EnforcementReport, FileExtent};
pub use filemap_policy::Costs;
pub use governing::{Error, GovernTarget, GovernorOutcome, GovernorSession};
pub use history_store::HistoryStore;
pub use journal::{AdviceJournal, start_ticks};
pub use metrics::MetricsFile;
pub use output_directory::{OutputDirectory, remove_output_directory, remove_stale_directories};
pub use prefetch::{Prefetch, PrefetchTotals};
pub use recorded::{GivenPlans, RecordedFile};
pub use release::{UnrestoredMapping, release};
pub use settings::GovernSettings;
pub use statistics::{
    FileStatistics, GovernStatistics, MappingState, MappingStatistics, ProcessStatistics,
};
