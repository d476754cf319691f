//! The addresses that are recorded, and the protection that the program gave them.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::sigset_t;

use super::ranges::{Found, Ranges};
use crate::disposition::{self, empty_set, with_signals_blocked};
use crate::lock::Lock;

/// The ranges, and the lock of all who change them or what is done to their memory.
pub struct Recorded {
    lock: Lock,
    ranges: Ranges,
    /// The thread whose fork is under way, over which it holds the lock; 0 where there is none.
    forking: AtomicUsize,
    /// The mask of the thread that forks.
    mask: UnsafeCell<Option<sigset_t>>,
}

// SAFETY: `mask` is only reached with the lock.
unsafe impl Sync for Recorded {}

pub static RECORDED: Recorded = Recorded {
    lock: Lock::new(),
    ranges: Ranges::new(),
    forking: AtomicUsize::new(0),
    mask: UnsafeCell::new(None),
};

/// What tells this thread from the others that are running. The only thread of the child of a fork
/// has the number of the one that forked. It is not asked of the kernel.
pub fn this_thread() -> usize {
    // SAFETY: the call takes nothing, and reads a register.
    unsafe { libc::pthread_self() as usize }
}

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
        self.forking.store(this_thread(), Ordering::Relaxed);
    }

    /// Releases what this thread holds, if it does: another one may hold it over a fork of its own.
    pub fn fork_is_over(&self) {
        if self.forking.load(Ordering::Relaxed) != this_thread() {
            return;
        }
        self.forking.store(0, Ordering::Relaxed);
        // SAFETY: this thread holds the lock, or the only thread of the child does.
        let mask = unsafe { (*self.mask.get()).take() };
        self.lock.release_after_fork();
        disposition::unblock(&mask.unwrap_or_else(empty_set));
    }

    /// In the child of a fork: who held anything is not in it.
    pub fn release_after_fork(&self) {
        self.forking.store(0, Ordering::Relaxed);
        self.lock.release_after_fork();
        self.ranges.release_after_fork();
    }
}
