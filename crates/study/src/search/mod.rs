//! The search for jobs that tell two variants apart, or that the second makes worse.

mod draw;
mod found;
mod goal;
mod mechanism;
mod record;
mod searching;
mod state;

pub use draw::Space;
pub use found::Found;
pub use goal::{Goal, Metric};
pub use record::Search;
pub use searching::{Searching, variants_flag};
pub use state::{Keeper, State};
