//! The governor: what is read ahead of file mappings is decided here instead of by the kernel.
//!
//! Processes are followed from outside (`filemap-attach`). A large read-only mapping of a file is
//! advised MADV_RANDOM, so that the kernel reads single pages, and what else is worth reading
//! (`filemap-policy`) is asked for on a descriptor of this process' own. Where the kernel's own
//! readahead costs less, the advice is restored. A program's results cannot change by that.
//!
//! The module `governor` holds the decisions: events go in, requests come out. [`GovernorSession`]
//! carries them out in threads of its own.
//!
//! What is recorded is advised in the same way, and noted in the same place: [`SinglePages`]. What
//! is to be tried for a program is advised by [`AdviceEnforcer`], once and without a policy.

mod advising;
mod advisor;
mod asked;
mod collecting;
mod costs;
mod file;
mod governing;
mod governor;
mod journal;
mod memory;
mod process;
mod range;
mod reader;
pub mod ready;
pub mod recorder;
mod release;
mod request;
pub mod run_directory;
mod settings;
mod statistics;

pub use advising::{AdviceEnforcer, AdviceRule, EnforcementReport, FileExtent};
pub use collecting::{OutputDirectory, remove_output_directory, remove_stale_directories};
pub use filemap_policy::Costs;
pub use governing::{Error, GovernTarget, GovernorOutcome, GovernorSession};
pub use journal::{AdviceJournal, start_ticks};
pub use release::{UnrestoredMapping, release};
pub use settings::GovernSettings;
pub use statistics::{GovernStatistics, MappingState, MappingStatistics, ProcessStatistics};
