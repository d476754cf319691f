//! Decisions of the running kernel, from its tracepoints.
//!
//! A [`Trace`] records [`TraceEvent`]s. An [`Observer`] runs a program under a trace and converts
//! the events to the model's [`Decision`](filemap_core::decision::Decision)s. A guest sends the
//! host a [`Recording`].

mod decisions;
mod event;
mod files;
mod observer;
mod packed;
mod probes;
mod recording;
mod tracefs;
mod waits;

pub use event::{Inode, TraceEvent, Tracepoint, parse};
pub use files::TracedFiles;
pub use observer::{Observation, Observer};
pub use recording::Recording;
pub(crate) use tracefs::TRACEPOINT_PREFIX;
pub use tracefs::{Trace, TraceFs};
pub use waits::{TracedWaits, WaitTrace};
