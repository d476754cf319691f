//! The governor's policy: a page of a file mapping was missing, which pages should be read?
//!
//! The governor advises a mapping MADV_RANDOM, so that the kernel reads single pages, and learns of
//! each major fault. [`State::fault`] answers with the pages that are worth reading besides.
//! The answer is advice: a wrong one costs time and never changes what a program computes.
//!
//! The code runs in a signal handler. So there is no allocator here (the crate is `no_std` without
//! `alloc`), no lock, no clock and no recursion, the state of a mapping has a fixed size, and lints
//! refuse what could panic. The same faults give the same answers, which is why the model can run
//! this code too.
//!
//! ```
//! use filemap_policy::{Bounds, Costs, Pages, State, Touch};
//!
//! let bounds = Bounds { mapping: Pages { first: 0, end: 100_000 }, file_pages: 100_000 };
//! let mut state = State::new(4096, Costs { fault_ns: 80_000, page_ns: 3_000 });
//! // A single miss says nothing.
//! assert_eq!(state.fault(700, Touch::Major, bounds).pages(), 0);
//! // The next page makes a stream. The first page of its window is left out: that fault will ask
//! // for the next window.
//! let reads = state.fault(701, Touch::Major, bounds);
//! assert_eq!(reads.ranges().collect::<Vec<_>>(), [Pages { first: 703, end: 706 }]);
//! let reads = state.fault(702, Touch::Major, bounds);
//! assert_eq!(reads.ranges().collect::<Vec<_>>(), [Pages { first: 707, end: 722 }]);
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::todo,
    clippy::unimplemented,
    clippy::unreachable,
    clippy::unwrap_used
)]

mod costs;
mod lengths;
mod pages;
mod reads;
mod recent;
mod state;
mod step;
mod stream;
mod table;

pub use costs::{Costs, Touch};
pub use pages::{Bounds, Pages};
pub use reads::{Pieces, Reads};
pub use state::State;
