//! The rules of Linux's file-mapped memory path.
//!
//! A rule is a function from a view of the state to a decision. Nothing here reads a clock, does
//! I/O, starts a thread or iterates in an order that could vary. Engines keep the state behind
//! [`cache::PageCache`] and carry out the steps of [`fault::Fault`] and [`read::Read`].
#![forbid(unsafe_code)]

pub mod bound;
pub mod cache;
pub mod charge;
pub mod decision;
pub mod fault;
pub mod fault_around;
pub mod layout;
pub mod marked;
pub mod miss;
pub mod on_demand;
pub mod page_table;
#[cfg(feature = "plain")]
pub mod plain;
pub mod read;
pub mod readahead;
pub mod reclaim;
pub mod rules;
pub mod search;
pub mod segments;
pub mod series;
pub mod statistics;
pub mod sync;
pub mod units;
pub mod vma;
mod word;
pub mod workingset;
