//! The governor's policy.
#![forbid(unsafe_code)]

mod account;
mod beyond;
mod comparison;
mod costs;
mod lengths;
mod pages;
mod reads;
mod recent;
mod region;
mod regions;
mod state;
mod step;
mod stream;
mod table;

pub use costs::{Costs, Touch, Window};
pub use pages::{Bounds, Pages};
pub use reads::Reads;
pub use state::State;
