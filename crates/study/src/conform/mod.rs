//! Conformance: what a kernel decided beside what the model decided, line by line.
//!
//! Both logs are in the form of [`Shown`]; where they come from is nobody's business here.

mod comparison;
mod doubt;
mod in_flight;
mod record;
mod report;

pub use comparison::{Comparison, Difference, compare, compare_seen};
pub use record::{Compared, Conformance, Finding, First, Pattern};
pub use report::JOB;

#[cfg(doc)]
use filemap_job::Shown;
