//! Perf events: opening them, and reading the records in their rings.

mod event;
mod record;
mod ring;
mod rings;

pub(crate) use event::{
    Attributes, Flag, each_thread, enable, lost_records, open, open_into, set_filter,
};
pub(crate) use record::{PerfRecord, RecordKind};
pub(crate) use rings::{COUNT_SW_DUMMY, OWN_THREAD, RingConfig, RingSpec, Rings};
