//! The integers that counters are made of: real ones, counted ones, and the control.

use std::sync::atomic::Ordering;

mod counted;
mod plain;
mod real;

pub use counted::{Counted, read_modify_writes};
pub use plain::{PlainPages, PlainU32};
pub use real::Real;

/// An integer that threads share.
///
/// Each `fetch` is one read-modify-write and returns the value before it.
#[expect(missing_docs, reason = "they are the functions of the standard library's atomics")]
pub trait Atomic<T>: Default + Send + Sync + 'static {
    fn load(&self, order: Ordering) -> T;
    fn store(&self, value: T, order: Ordering);
    fn fetch_add(&self, value: T, order: Ordering) -> T;
    fn fetch_sub(&self, value: T, order: Ordering) -> T;
    fn fetch_or(&self, value: T, order: Ordering) -> T;
    fn fetch_and(&self, value: T, order: Ordering) -> T;
}

/// A kind of integers, which counters are written for.
///
/// [`Real`] is the usual one. Checkers of interleavings bring their own.
pub trait Atomics: Sized + Send + Sync + 'static {
    /// Counts the mappings of one page.
    type Page: Atomic<u32>;
    /// Counts something of a folio.
    type U32: Atomic<u32>;
    /// Holds several fields of a folio, or words of a bitmap.
    type U64: Atomic<u64>;

    /// Waits a moment for another thread.
    #[inline]
    fn relax() {
        std::hint::spin_loop();
    }
}

/// Implements [`Atomic`] by calls of functions of the same names.
///
/// `forward!(Type, u32, |it| it.0)` says where in `Type` they are found.
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
