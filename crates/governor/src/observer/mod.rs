//! What observes major faults: a perf event, or where that is not permitted a thread that looks at
//! the page tables.

pub mod perf;
pub mod polling;

/// Sees that faults are observed from the first mapping on that is governed.
pub fn begin() {
    if perf::descriptor().is_some() {
        perf::enable();
    } else {
        polling::start_if_needed();
    }
}
