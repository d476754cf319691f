//! What the running kernel decides, by its tracepoints.
//!
//! A [`Trace`] records [`Event`]s. An [`Observer`] runs a job of either form under one, and reads
//! the events as the [`Decision`](filemap_core::decision::Decision)s of the model.

mod decisions;
mod event;
mod observer;
mod subject;
mod tracefs;
mod waits;

pub use event::{Event, Inode, Tracepoint, parse};
pub use observer::{Observed, Observer};
pub use subject::Subject;
pub use tracefs::{Trace, TraceFs};
pub use waits::{TracedWaits, WaitTrace};
