//! The locks of an address space (`mm_struct`).
//!
//! `mmap_lock` is fair. A reader queues after a writer that waits. A writer that is woken and finds
//! the lock taken gets it handed over after 4 ms. A release wakes 256 readers at most; they have
//! the lock from then on, also while they wait for a CPU. A writer of `mmap_lock` also takes the
//! locks of the VMAs that it changes, where it waits for faults that hold them; a fault that finds
//! its VMA marked goes to `mmap_lock`. Where one thread runs in a process, or none of its threads
//! writes to `mmap_lock`, nobody can wait, and such a process keeps no locks.
//!
//! A writer of `mmap_lock` spins before it sleeps: while the writer that has the lock runs on a
//! CPU, and for 10.5 to 25 us where readers have it. It has the lock as soon as that is given up,
//! before those who sleep. It gives up where its time slice is over or the other writer loses its
//! CPU. After readers had the lock for too long no writer spins until one has had it. One writer
//! spins at a time. A spin that ends with the lock is no wait.

mod locks;
pub mod mmap_lock;
pub mod vma_lock;

pub use locks::{Locks, Taken};
pub use mmap_lock::Holder;
