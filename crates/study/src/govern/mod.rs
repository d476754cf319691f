//! Programs under the governor: records of what it did, and comparisons with plain runs.

mod compare;
mod compare_report;
mod exits;
mod processes;
mod record;

pub use compare::{
    GovernCompareOptions, GovernCompareRecord, GovernSample, GovernVariant, GovernedFile, compare,
};
pub use processes::{MappingRecord, Observer, ProcessRecord, ProcessTotals, process_records};
pub use record::GovernRecord;
