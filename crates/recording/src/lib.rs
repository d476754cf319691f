//! What a program did with its files, in order: a recording.
//!
//! A [`Writer`] takes [`Event`]s and writes them as a stream of compressed blocks; a [`Reader`]
//! gives them back, one block in memory at a time. docs/RECORDING.md describes the file.
//! [`convert`] makes the job of a program of a recording, and [`import`] makes recordings of what
//! other tools have written.
//!
//! Nothing here opens a file: the caller hands in what is read and written.
#![forbid(unsafe_code)]

pub mod assembly;
mod block;
mod columns;
pub mod convert;
mod error;
mod event;
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
pub use event::{Event, EventKind, MAX_CALLERS, Pages};
pub use frame::MAGIC;
pub use header::{Header, NO_CLOCK, RecordingMode, VERSION};
pub use may_write::may_write;
pub use reader::{Reader, Truncated};
pub use writer::{Totals, Writer};
