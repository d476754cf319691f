//! Recordings: the file accesses of a program, in order.
//!
//! A [`Writer`] writes [`Event`]s as a stream of compressed blocks; a [`Reader`] iterates over them
//! with one block in memory at a time. docs/RECORDING.md specifies the format. [`convert`] turns a
//! recording into a job, and [`import`] turns traces of other tools into recordings.
//!
//! Nothing here opens the recording itself: callers pass readers and writers.
#![forbid(unsafe_code)]

pub mod assembly;
mod block;
mod columns;
pub mod convert;
mod error;
mod event;
mod event_table;
mod events;
mod frame;
mod header;
pub mod import;
mod may_write;
mod reader;
mod references;
mod wait;
mod wire;
mod writer;

pub use error::{Error, Problem};
pub use event::{Event, EventKind, GapKind, MappingPages};
pub use event_table::{EVENT_COLUMNS, EventCell, EventRow, for_each_row};
pub use frame::MAGIC;
pub use header::{Header, NO_CLOCK, RecordingMode, VERSION};
pub use may_write::may_write;
pub use reader::{Reader, Truncated};
pub use writer::{Totals, Writer};
