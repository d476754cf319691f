//! The engine in virtual time: carries out the steps of `filemap-core`'s rules.
//!
//! The same job and seed give the same decision log, bit for bit, on every machine. Elapsed times
//! are predictions from a machine [`profile`].
#![forbid(unsafe_code)]

mod advise;
pub mod device;
mod engine;
mod error;
pub mod extents;
mod governor;
mod holes;
mod log;
mod memory;
pub mod mm;
mod open;
mod pending;
mod process;
pub mod profile;
mod program;
mod tally;
mod task;
pub mod tlb;
mod wait_queue;
mod world;

pub use engine::{ModelEngine, ReadyModel};
pub use error::Error;
pub use log::Digest;
pub use memory::Flushes;
pub use open::mappings;
pub use profile::Profile;
pub use program::{StepStats, TracedRun, trace, trace_on, trace_timed};
pub use tally::{Tally, folio_orders};
pub use world::Timing;
