//! Conformance: compares a kernel's decisions with the model's, line by line.
//!
//! Both logs contain decisions as tracepoints show them ([`filemap_job::trace_view`]).

mod bench;
mod case;
mod common_prefix;
mod compared_kernel;
mod comparison;
mod decision_text;
mod difference_text;
mod differences;
mod evidence;
mod in_flight;
mod jobs;
mod outcome;
mod pattern_names;
mod patterns;
mod program;
mod random_patterns;
mod reason;
mod record;
mod report;
mod rule;
mod shrink;
#[cfg(test)]
mod tests;
mod verdict;

pub use common_prefix::common_prefix;
pub use compared_kernel::{ComparedKernel, job_file};
pub use jobs::conform_jobs;
pub use pattern_names::select_patterns;
pub use patterns::{built_in, random, seed};
pub use program::conform_program;
pub use random_patterns::draw_pattern;
pub use record::ConformRecord;
pub use report::JOB;
