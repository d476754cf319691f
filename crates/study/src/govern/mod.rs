//! Programs under the governor: what was done for them, and what it changes.

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
