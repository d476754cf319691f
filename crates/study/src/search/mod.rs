//! The search for jobs that tell two variants apart, or that the second makes worse.

mod draw;
mod findings;
mod goal;
mod mechanism;
mod record;
mod rounds;
mod state;

pub use draw::JobSpace;
pub use findings::SearchFindings;
pub use goal::{Goal, Metric};
pub use record::SearchRecord;
pub use rounds::{SearchOptions, TimeLimit, variants_flag};
pub use state::{SearchControl, SearchState};
