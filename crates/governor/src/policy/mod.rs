//! The policy of this library, in which everything has a fixed size as it runs in a signal handler.
//! What governs from outside has the one of `filemap-policy`.

mod lengths;
mod pages;
mod reads;
mod recent;
mod state;
mod step;
mod stream;
mod table;

pub use pages::{Bounds, Pages};
pub use reads::Reads;
pub use state::State;
