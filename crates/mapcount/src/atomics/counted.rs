//! Atomics that count how often they are changed.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Atomic, Atomics};

/// The standard library's atomics; each read-modify-write is counted, for the thread that made it.
pub struct Counted;

impl Atomics for Counted {
    type Page = Counting<AtomicU32>;
    type U32 = Counting<AtomicU32>;
    type U64 = Counting<AtomicU64>;
}

thread_local! {
    static MADE: Cell<u64> = const { Cell::new(0) };
}

/// How many read-modify-writes this thread made on [`Counted`] integers during `act`.
pub fn read_modify_writes(act: impl FnOnce()) -> u64 {
    let before = MADE.get();
    act();
    MADE.get() - before
}

/// An integer of [`Counted`].
#[derive(Default)]
pub struct Counting<T>(T);

impl<T> Counting<T> {
    fn count(&self) -> &T {
        MADE.set(MADE.get() + 1);
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
