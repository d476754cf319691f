//! Memory that all processes of a probe share, and by which their threads wait for each other.

use std::mem::{align_of, size_of};
use std::ptr::null_mut;
use std::slice::from_raw_parts;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use filemap_job::waits::Histogram;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::thread::futex::{Flags, wait, wake};

use super::outcome::COST_WORDS;
use crate::Error;

/// What may lie in memory that processes share.
///
/// # Safety
/// All zeros is a value of it, it holds no address, and it does not drop.
pub(super) unsafe trait Shareable: Sync {}

// SAFETY: a number, which any bits are.
unsafe impl Shareable for AtomicU64 {}
// SAFETY: as above.
unsafe impl Shareable for [AtomicU64; COST_WORDS] {}
// SAFETY: as above.
unsafe impl Shareable for [AtomicU64; Histogram::WORDS] {}
// SAFETY: as above.
unsafe impl Shareable for SharedCounter {}

/// A mapping that is the same in every process forked from now on, until they end.
pub(super) struct SharedMemory {
    next: usize,
    end: usize,
}

impl SharedMemory {
    /// Room for so many bytes, all of them zeros.
    pub(super) fn map(bytes: usize) -> Result<SharedMemory, Error> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe { mmap_anonymous(null_mut(), bytes.max(1), protection, flags) };
        let base = base.map_err(|errno| Error::call("map memory that processes share", errno))?;
        Ok(SharedMemory { next: base as usize, end: base as usize + bytes })
    }

    /// Takes `count` values of it.
    pub(super) fn take<T: Shareable>(&mut self, count: usize) -> &'static [T] {
        let start = self.next.next_multiple_of(align_of::<T>());
        self.next = start + count * size_of::<T>();
        assert!(self.next <= self.end, "it was mapped for all that is taken");
        // SAFETY: this part of the mapping, which stays to the end, is taken once; it is zeros,
        // which the type allows.
        unsafe { from_raw_parts(start as *const T, count) }
    }
}

/// A number that only grows, and that threads of any process wait for.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(super) struct SharedCounter(AtomicU32);

impl SharedCounter {
    pub(super) fn value(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Adds one and wakes who waits. Returns what it was.
    pub(super) fn increment(&self) -> u32 {
        let before = self.0.fetch_add(1, Ordering::AcqRel);
        // Waking fails for no number that is in memory.
        let _ = wake(&self.0, Flags::empty(), i32::MAX as u32);
        before
    }

    /// Waits until it is `number` or more.
    pub(super) fn wait_for(&self, number: usize) {
        self.wait_until(|now| now as usize >= number);
    }

    /// Waits until it is something else than `number`.
    pub(super) fn wait_change(&self, number: u32) {
        self.wait_until(|now| now != number);
    }

    fn wait_until(&self, is_met: impl Fn(u32) -> bool) {
        loop {
            let now = self.value();
            if is_met(now) {
                return;
            }
            // It ends early for a signal, and where the number has changed: both are seen above.
            let _ = wait(&self.0, Flags::empty(), now, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::scope;

    use super::*;

    #[test]
    fn what_is_taken_lies_apart_and_threads_wait_for_it() {
        let mut memory = SharedMemory::map(12 + 16).unwrap();
        let counts: &[SharedCounter] = memory.take(3);
        let words: &[AtomicU64] = memory.take(1);
        assert_eq!(words[0].load(Ordering::Relaxed), 0);
        scope(|scope| {
            scope.spawn(|| counts[1].wait_for(2));
            counts[1].increment();
            assert_eq!(counts[1].increment(), 1);
        });
        counts[1].wait_change(0);
        assert_eq!((counts[0].value(), counts[1].value()), (0, 2));
    }
}
