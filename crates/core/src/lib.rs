//! The rules of Linux's file-mapped memory path.
//!
//! A rule is a function from a view of the state to a decision. Nothing here reads a clock, does
//! I/O, starts a thread or iterates in an order that could vary. Engines keep the state behind
//! [`page_cache::PageCache`] and carry out the steps of [`fault::Fault`] and
//! [`fault::read::ReadCall`].
#![forbid(unsafe_code)]

pub mod address;
pub mod cache;
pub mod cold_or_pageout;
pub mod decision;
pub mod fault;
pub mod lru;
pub mod page_cache;
pub mod plain;
pub mod readahead;
pub mod rules;
pub mod series;
pub mod units;
mod word;

/// The readahead governor's policy, a separate crate.
pub use filemap_policy as governor;
