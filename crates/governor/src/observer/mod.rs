//! What observes major faults.

pub mod perf;
