//! A lock that a signal handler may try.

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tries before another thread that has the lock is left alone, or given the processor.
const TRIES: u32 = 64;

/// A lock. Who waits for it must have blocked all signals in the thread, so that no handler of that
/// thread can find it taken for ever.
pub struct Lock(AtomicBool);

/// The lock is released when this goes.
pub struct Held<'a>(&'a Lock);

impl Lock {
    pub const fn new() -> Lock {
        Lock(AtomicBool::new(false))
    }

    /// Takes it if that is possible without waiting for long.
    pub fn try_hold(&self) -> Option<Held<'_>> {
        (0..TRIES).find_map(|_| {
            let is_taken = self.0.swap(true, Ordering::Acquire);
            if is_taken {
                hint::spin_loop();
            }
            // Not made where it is taken: that would release another thread's.
            (!is_taken).then(|| Held(self))
        })
    }

    /// Waits for it. Signals are blocked in this thread (see [`Lock`]).
    pub fn hold(&self) -> Held<'_> {
        loop {
            if let Some(held) = self.try_hold() {
                return held;
            }
            rustix::thread::sched_yield();
        }
    }

    /// Releases it in the child of a fork, where the thread that had it does not exist.
    pub fn release_after_fork(&self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}
