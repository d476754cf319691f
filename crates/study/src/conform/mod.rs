//! Conformance: what a kernel decided beside what the model decided, line by line.
//!
//! Both logs are in the form of [`Shown`]; where they come from is nobody's business here.

mod comparison;
mod doubt;
mod in_flight;
mod report;

pub use comparison::{Comparison, Difference, compare, compare_seen};
pub(crate) use report::Json;
pub(crate) use report::unseen;
pub use report::{Compared, Finding, Pattern, doubt, left_out, not_compared, report};

#[cfg(doc)]
use filemap_job::Shown;
