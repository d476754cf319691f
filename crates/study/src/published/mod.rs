//! Compares published tables with the model, cell by cell.
//!
//! A series is mostly data (`data/published.toml`): published figures, tolerances, notes, tables
//! and rows. Its module has the jobs it runs, how figures follow from their records, and the values
//! in notes. Reports are made from cells alone.
//!
//! The tolerance of a figure follows from what is known about its measurement, and it can fail on
//! either side. With an unknown list of accesses the published figure is one sample, judged by the
//! spread over seeds. With known accesses it is judged by a measured bound, since a counter of the
//! whole machine counts more than the file. Figures published twice are judged by their own range,
//! counts exactly. Figures that depend on an unknown machine or on this one are compared, not
//! judged. Fitted figures are marked and not judged. The first lines of a report count each kind.

mod cell;
mod cell_table;
mod data;
mod exec_order;
mod list;
mod mm_owner;
mod mmap_miss;
mod page;
mod plan;
mod record;
mod registry;
mod source;
mod study;
mod summary;
mod tolerance;
mod vma_bound;
mod vma_retry;

pub use self::list::list;
pub use self::plan::PublishedPlan;
pub use self::record::PublishedRecord;
pub use self::registry::{NAMES, OF_PROGRAMS, RANDOM};
pub use self::study::PublishedOptions;
