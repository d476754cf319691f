//! The lists that memory is reclaimed from.

pub mod charge;
pub mod invalidate;
pub mod lists;
pub mod reclaim;
pub mod statistics;
pub mod workingset;
