//! The locks of an address space (`mm_struct`).

mod locks;
pub mod mmap_lock;
pub mod vma_lock;

pub use locks::{Locks, Taken};
pub use mmap_lock::Holder;
