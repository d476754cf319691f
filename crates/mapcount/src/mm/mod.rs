//! A small mm of anonymous memory: address spaces whose folios are counted by any [`Mapcount`].
//!
//! It has what surrounds counting in a kernel, so that the cost of counting can be seen in
//! proportion: page tables whose entries are changed by atomics, frames of a cache line each, a
//! reference for each mapping, folios with memory behind them, an LRU, statistics, and a gather
//! of what is freed after the flush of the TLB.
//!
//! [`Mapcount`]: crate::Mapcount

mod allocate;
mod buddy;
mod cgroup;
mod contents;
mod cpu;
mod fault;
mod fork;
mod frame;
mod memory;
mod munmap;
mod page_table;
mod resident;
mod ring;
mod rmap;
mod scatter;
mod space;
mod statistics;
mod values;

pub use contents::Contents;
pub(crate) use contents::InUse;
pub use cpu::{Cpu, KEPT_PAGES};
pub use fault::Written;
pub use memory::Memory;
pub use resident::Resident;
pub use scatter::scattered_pages;
pub use space::AddressSpace;
pub use statistics::Item;
