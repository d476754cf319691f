//! A spinlock in one bit of a word that holds something else too.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::atomics::{Atomic, Atomics};
use crate::broken::Broken;

/// The bit of the lock. The others are the caller's.
pub const LOCK: u64 = 1 << 63;

/// Changes what `word` guards while holding its lock: one read-modify-write if nobody else has it.
///
/// `change` gets the word, without the lock, and returns the new word. The word is stored as a
/// whole, which gives the lock back without a second read-modify-write.
///
/// # Panics
/// When `change` fails. It must not have changed anything then; the lock is free again.
#[inline]
pub fn locked<A: Atomics, T>(
    word: &A::U64,
    change: impl FnOnce(u64) -> Result<(u64, T), Broken>,
) -> T {
    let old = lock::<A>(word);
    match change(old) {
        Ok((new, value)) => {
            word.store(new, Release);
            value
        }
        Err(broken) => {
            word.store(old, Release);
            broken.panic()
        }
    }
}

#[inline]
fn lock<A: Atomics>(word: &A::U64) -> u64 {
    loop {
        let old = word.fetch_or(LOCK, Acquire);
        if old & LOCK == 0 {
            return old;
        }
        // Only reads, so that the word stays in this processor's cache until it changes.
        while word.load(Relaxed) & LOCK != 0 {
            A::relax();
        }
    }
}
