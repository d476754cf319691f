//! Conformance: what a kernel decided beside what the model decided, line by line.
//!
//! Both logs are of decisions as tracepoints show them ([`filemap_job::trace_view`]).

mod asked;
mod bench;
mod comparison;
mod doubt;
mod in_flight;
mod jobs;
mod outcome;
mod patterns;
mod program;
mod record;
mod report;

pub use asked::{Asked, without_image};
pub use jobs::of_jobs;
pub use patterns::{built_in, random, seed};
pub use program::of_program;
pub use record::Conformance;
pub use report::JOB;
