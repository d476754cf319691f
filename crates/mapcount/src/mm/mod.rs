//! A small mm of anonymous memory: address spaces whose folios are counted by any [`Mapcount`].
//!
//! It has the work that surrounds counting in a kernel, so that the cost of counting is seen in
//! proportion: page tables changed by atomics, frames of one cache line, a reference for each
//! mapping, folios with real memory, an LRU, statistics, and freeing in batches after a TLB flush.
//!
//! [`Mapcount`]: crate::Mapcount

mod accounting;
mod allocate;
mod cpu;
mod fault;
mod frame;
mod memory;
mod page_table;
mod rmap;
mod space;

pub use accounting::StatItem;
pub use cpu::{Cpu, MAX_CPU_PAGES};
pub use fault::WriteKind;
pub(crate) use memory::ContentsGuard;
pub use memory::{Contents, Memory};
pub use space::AddressSpace;
