//! A small mm of anonymous memory: address spaces whose folios are counted by any [`Mapcount`].
//!
//! It has what surrounds counting in a kernel, so that the cost of counting can be seen in
//! proportion: page tables whose entries are changed by atomics, frames of a cache line each, a
//! reference for each mapping, folios with memory behind them, an LRU, statistics, and a gather
//! of what is freed behind the flush of the TLB.
//!
//! [`Mapcount`]: crate::Mapcount

mod cpu;
mod fault;
mod fork;
mod frame;
mod memory;
mod munmap;
mod page_table;
mod resident;
mod space;

pub use cpu::Cpu;
pub use fault::Written;
pub use memory::Memory;
pub use resident::Resident;
pub use space::AddressSpace;
