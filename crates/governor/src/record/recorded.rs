//! The addresses that are recorded, and the protection that the program gave them.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::sigset_t;

use super::ranges::{Found, Ranges};
use crate::disposition::{self, empty_set, with_signals_blocked};
use crate::lock::Lock;

/// The ranges, and the lock of all who change them or what is done to their memory.
pub struct Recorded {
    lock: Lock,
    ranges: Ranges,
    /// A fork is under way, over which the lock is held.
    is_forking: AtomicBool,
    /// The mask of the thread that forks.
    mask: UnsafeCell<Option<sigset_t>>,
}

// SAFETY: `mask` is only reached with the lock.
unsafe impl Sync for Recorded {}

pub static RECORDED: Recorded = Recorded {
    lock: Lock::new(),
    ranges: Ranges::new(),
    is_forking: AtomicBool::new(false),
    mask: UnsafeCell::new(None),
};

impl Recorded {
    /// Whether something of `range` is recorded.
    pub fn has(&self, range: &Range<usize>) -> bool {
        self.ranges.first(range).is_some()
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The parts of `range` that are recorded.
    pub fn parts(&self, range: &Range<usize>) -> impl Iterator<Item = Found> {
        self.ranges.parts(range)
    }

    /// Runs `work` while nobody else changes the ranges.
    pub fn change<R>(&self, work: impl FnOnce(&Ranges) -> R) -> R {
        with_signals_blocked(|| self.in_handler(work))
    }

    /// The same where all signals are blocked.
    pub fn in_handler<R>(&self, work: impl FnOnce(&Ranges) -> R) -> R {
        let _held = self.lock.hold();
        work(&self.ranges)
    }

    /// Adds a range with the protection that it has. Returns whether there was room.
    pub fn add(&self, range: &Range<usize>, protection: c_int) -> bool {
        let word = protection.cast_unsigned() as usize;
        self.change(|ranges| ranges.add(range.clone(), word, || ()))
    }

    /// Takes a range out, and tells `left` what was behind it and is lost. Returns whether
    /// something of it was there.
    pub fn remove(&self, range: &Range<usize>, left: impl FnOnce(&Range<usize>)) -> bool {
        let had = self.has(range);
        if had {
            self.change(|ranges| {
                if let Some(lost) = ranges.remove(range, || ()) {
                    left(&lost.range);
                }
            });
        }
        had
    }

    /// Holds everything as it is until [`Recorded::fork_is_over`], in parent and child.
    pub fn hold_over_fork(&self) {
        let mask = disposition::block_all();
        mem::forget(self.lock.hold());
        // SAFETY: the lock is held.
        unsafe { *self.mask.get() = Some(mask) };
        self.is_forking.store(true, Ordering::Relaxed);
    }

    pub fn fork_is_over(&self) {
        if !self.is_forking.swap(false, Ordering::Relaxed) {
            return;
        }
        // SAFETY: this thread holds the lock, or the only thread of the child does.
        let mask = unsafe { (*self.mask.get()).take() };
        self.lock.release_after_fork();
        disposition::unblock(&mask.unwrap_or_else(empty_set));
    }

    /// In the child of a fork by which nobody held anything.
    pub fn release_after_fork(&self) {
        self.lock.release_after_fork();
        self.ranges.release_after_fork();
    }
}
