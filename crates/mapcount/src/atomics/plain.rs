//! The control: counters of pages that lose updates, and cost no locked instruction.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Atomic, Atomics};

/// [`Real`](super::Real) atomics but for the counts of pages, which are read and written apart.
///
/// Two threads lose each other's updates. What a folio costs less with this than with real atomics
/// is what the atomics of its pages cost. It serves no other purpose.
pub struct PlainPages;

impl Atomics for PlainPages {
    type Page = PlainU32;
    type U32 = AtomicU32;
    type U64 = AtomicU64;
}

/// An integer whose changes are a load and a store.
#[derive(Default)]
pub struct PlainU32(AtomicU32);

impl PlainU32 {
    #[inline]
    fn change(&self, change: impl FnOnce(u32) -> u32) -> u32 {
        let old = self.0.load(Relaxed);
        self.0.store(change(old), Relaxed);
        old
    }
}

impl Atomic<u32> for PlainU32 {
    #[inline]
    fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }

    #[inline]
    fn store(&self, value: u32, order: Ordering) {
        self.0.store(value, order);
    }

    #[inline]
    fn fetch_add(&self, value: u32, _: Ordering) -> u32 {
        self.change(|old| old.wrapping_add(value))
    }

    #[inline]
    fn fetch_sub(&self, value: u32, _: Ordering) -> u32 {
        self.change(|old| old.wrapping_sub(value))
    }

    #[inline]
    fn fetch_or(&self, value: u32, _: Ordering) -> u32 {
        self.change(|old| old | value)
    }

    #[inline]
    fn fetch_and(&self, value: u32, _: Ordering) -> u32 {
        self.change(|old| old & value)
    }
}
