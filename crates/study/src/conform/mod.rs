//! Conformance: what a kernel decided beside what the model decided, line by line.
//!
//! Both logs are of decisions as tracepoints show them ([`filemap_job::trace_view`]).

mod agreed;
mod asked;
mod bench;
mod case;
mod chosen;
mod comparison;
mod difference_text;
mod differences;
mod evidence;
mod in_flight;
mod jobs;
mod outcome;
mod patterns;
mod program;
mod random_patterns;
mod reason;
mod record;
mod report;
mod rule;
mod smaller;
#[cfg(test)]
mod tests;
mod told;
mod verdict;

pub use agreed::agreed;
pub use asked::{Asked, job_file};
pub use chosen::chosen;
pub use jobs::of_jobs;
pub use patterns::{built_in, random, seed};
pub use program::of_program;
pub use random_patterns::drawn;
pub use record::Conformance;
pub use report::JOB;
