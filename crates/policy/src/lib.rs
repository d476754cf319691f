//! The governor's policy.
//!
//! [`State`] is what is known of one file, through all mappings of it. It takes faults and returns
//! ranges of pages to read. It has no clock and does no I/O, so the same faults have the same
//! answers. What reads cost is told to it.
//!
//! A stream goes on when the program comes to what was asked for: the fault there is a minor one,
//! and tells that the window is in use. So no page is left out to hear of it. Windows grow by 4,
//! and from 64 pages on by 2. Beyond 64 pages none is longer than a quarter of what its stream has
//! come to. A second page makes a stream only where the same thread comes to it next. Otherwise the
//! third one does, since in small files neighbours come by chance.
//!
//! Lengths of runs are counted in buckets of an eighth of a power of two, and count half after 256
//! runs. Where half of the runs that came as far went on, a stream reads up to where half of them
//! ended. Where more than an eighth of what streams have asked for was never come to, windows stay
//! small.
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
