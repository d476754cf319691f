//! The LRU lists and reclaim.

pub mod charge;
pub mod direct;
pub mod high;
pub mod invalidate;
mod judge;
pub mod lists;
pub mod reclaim;
pub mod statistics;
pub mod workingset;
