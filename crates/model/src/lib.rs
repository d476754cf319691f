//! The engine in virtual time: carries out the steps of `filemap-core`'s rules.
//!
//! The same job and seed give the same decision log, bit for bit, on every machine. Elapsed times
//! are predictions from a machine [`profile`].
#![forbid(unsafe_code)]

mod access;
mod advise;
pub mod census;
mod charge;
pub mod device;
mod digest;
mod engine;
mod error;
pub mod extents;
mod flushes;
mod governor;
mod journal;
mod memory;
pub mod mm;
mod open;
mod per_task;
mod process;
pub mod profile;
mod program;
mod setup;
mod tally;
mod task;
pub mod tlb;
mod under_way;
mod waiting;
mod world;

pub use digest::Digest;
pub use engine::{Model, ReadyModel};
pub use error::Error;
pub use flushes::Flushes;
pub use profile::Profile;
pub use program::{Done, Traced, trace, trace_on, trace_settled};
pub use setup::mappings;
pub use tally::Tally;
pub use world::Timing;
