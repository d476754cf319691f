//! The integers that counters are made of, so that one implementation can be run, counted, explored
//! by loom, and compared with a non-atomic control.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// An integer that threads share. Each `fetch` is one read-modify-write and returns the old value.
#[expect(missing_docs, reason = "they are the functions of the standard library's atomics")]
pub trait Atomic<T>: Default + Send + Sync + 'static {
    fn load(&self, order: Ordering) -> T;
    fn store(&self, value: T, order: Ordering);
    fn fetch_add(&self, value: T, order: Ordering) -> T;
    fn fetch_sub(&self, value: T, order: Ordering) -> T;
    fn fetch_or(&self, value: T, order: Ordering) -> T;
    fn fetch_and(&self, value: T, order: Ordering) -> T;
}

/// A family of integers that counters are generic over.
pub trait Atomics: Sized + Send + Sync + 'static {
    /// Counts the mappings of one page.
    type Page: Atomic<u32>;
    /// Counts something of a folio.
    type U32: Atomic<u32>;
    /// Holds several fields of a folio, or words of a bitmap.
    type U64: Atomic<u64>;

    /// Called while spinning on another thread.
    #[inline]
    fn relax() {
        std::hint::spin_loop();
    }
}

/// Implements [`Atomic`] by calling the methods of the same names:
/// `forward!(Type, u32, |it| it.0)` says where in `Type` they are.
#[macro_export]
macro_rules! forward {
    ($type:ty, $value:ty, |$it:ident| $inner:expr) => {
        impl $crate::atomics::Atomic<$value> for $type {
            $crate::forward!(@load $value, $it, $inner);
            $crate::forward!(@fetch fetch_add, $value, $it, $inner);
            $crate::forward!(@fetch fetch_sub, $value, $it, $inner);
            $crate::forward!(@fetch fetch_or, $value, $it, $inner);
            $crate::forward!(@fetch fetch_and, $value, $it, $inner);
        }
    };
    (@load $value:ty, $it:ident, $inner:expr) => {
        #[inline]
        fn load(&self, order: std::sync::atomic::Ordering) -> $value {
            let $it = self;
            $inner.load(order)
        }
        #[inline]
        fn store(&self, value: $value, order: std::sync::atomic::Ordering) {
            let $it = self;
            $inner.store(value, order);
        }
    };
    (@fetch $name:ident, $value:ty, $it:ident, $inner:expr) => {
        #[inline]
        fn $name(&self, value: $value, order: std::sync::atomic::Ordering) -> $value {
            let $it = self;
            $inner.$name(value, order)
        }
    };
}

/// The standard library's atomics.
pub struct StdAtomics;

impl Atomics for StdAtomics {
    type Page = AtomicU32;
    type U32 = AtomicU32;
    type U64 = AtomicU64;
}

forward!(AtomicU32, u32, |it| it);
forward!(AtomicU64, u64, |it| it);

/// The standard library's atomics, with a count of read-modify-writes for each thread.
pub struct CountingAtomics;

impl Atomics for CountingAtomics {
    type Page = Counting<AtomicU32>;
    type U32 = Counting<AtomicU32>;
    type U64 = Counting<AtomicU64>;
}

thread_local! {
    static READ_MODIFY_WRITES: Cell<u64> = const { Cell::new(0) };
}

/// The read-modify-writes that this thread makes on integers of [`CountingAtomics`] during `act`.
pub fn count_read_modify_writes(act: impl FnOnce()) -> u64 {
    let before = READ_MODIFY_WRITES.get();
    act();
    READ_MODIFY_WRITES.get() - before
}

/// An integer of [`CountingAtomics`].
#[derive(Default)]
pub struct Counting<T>(T);

impl<T> Counting<T> {
    fn count(&self) -> &T {
        READ_MODIFY_WRITES.set(READ_MODIFY_WRITES.get() + 1);
        &self.0
    }
}

impl<N, T: Atomic<N>> Atomic<N> for Counting<T> {
    fn load(&self, order: Ordering) -> N {
        self.0.load(order)
    }

    fn store(&self, value: N, order: Ordering) {
        self.0.store(value, order);
    }

    fn fetch_add(&self, value: N, order: Ordering) -> N {
        self.count().fetch_add(value, order)
    }

    fn fetch_sub(&self, value: N, order: Ordering) -> N {
        self.count().fetch_sub(value, order)
    }

    fn fetch_or(&self, value: N, order: Ordering) -> N {
        self.count().fetch_or(value, order)
    }

    fn fetch_and(&self, value: N, order: Ordering) -> N {
        self.count().fetch_and(value, order)
    }
}

/// The control: [`StdAtomics`] except for the counts of pages, which are not atomic.
///
/// Threads lose each other's updates. The time that a folio saves with it is the cost of the atomic
/// operations on its pages; it serves no other purpose.
pub struct NonAtomicPages;

impl Atomics for NonAtomicPages {
    type Page = NonAtomicU32;
    type U32 = AtomicU32;
    type U64 = AtomicU64;
}

/// An integer whose changes are a load and a store.
#[derive(Default)]
pub struct NonAtomicU32(AtomicU32);

impl NonAtomicU32 {
    #[inline]
    fn change(&self, change: impl FnOnce(u32) -> u32) -> u32 {
        let old = self.0.load(Relaxed);
        self.0.store(change(old), Relaxed);
        old
    }
}

impl Atomic<u32> for NonAtomicU32 {
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
