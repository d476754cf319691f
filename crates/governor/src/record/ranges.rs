//! The addresses that are recorded.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::advice;
use crate::disposition::with_signals_blocked;
use crate::lock::Lock;

/// The most ranges. Of more only the faults are told that the kernel's own readahead leaves.
const MOST: usize = 1024;

/// Ranges of addresses; an empty one is free.
struct Place {
    start: AtomicUsize,
    end: AtomicUsize,
}

/// The ranges.
pub struct Ranges {
    lock: Lock,
    /// Places behind the last one that was ever used.
    used: AtomicUsize,
    /// There was no room for one.
    is_full: AtomicBool,
    places: [Place; MOST],
}

pub static RANGES: Ranges = Ranges {
    lock: Lock::new(),
    used: AtomicUsize::new(0),
    is_full: AtomicBool::new(false),
    places: [const { Place { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; MOST],
};

impl Place {
    fn range(&self) -> Range<usize> {
        let end = self.end.load(Ordering::Acquire);
        self.start.load(Ordering::Acquire)..end
    }

    /// Fills a place that is empty.
    fn fill(&self, range: &Range<usize>) {
        self.end.store(0, Ordering::Release);
        self.start.store(range.start, Ordering::Release);
        self.end.store(range.end, Ordering::Release);
    }
}

impl Ranges {
    fn used(&self) -> impl Iterator<Item = &Place> {
        self.places.iter().take(self.used.load(Ordering::Acquire))
    }

    fn overlapping(&self, range: &Range<usize>) -> impl Iterator<Item = &Place> {
        self.used().filter(|place| {
            let has = place.range();
            has.start < range.end && range.start < has.end
        })
    }

    /// Whether something of `range` is recorded.
    pub fn has(&self, range: &Range<usize>) -> bool {
        self.overlapping(range).next().is_some()
    }

    /// Whether `address` is recorded, or may be since there was no room for all.
    pub fn may_have(&self, address: usize) -> bool {
        self.is_full.load(Ordering::Relaxed) || self.has(&(address..address + 1))
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.used().all(|place| place.range().is_empty())
    }

    /// Calls `act` with each of them.
    pub fn each(&self, act: impl FnMut(Range<usize>)) {
        self.used().map(Place::range).filter(|range| !range.is_empty()).for_each(act);
    }

    /// Adds a range. Returns whether there was room.
    pub fn add(&self, range: &Range<usize>) -> bool {
        with_signals_blocked(|| {
            let _held = self.lock.hold();
            self.put(range)
        })
    }

    /// The lock is held.
    fn put(&self, range: &Range<usize>) -> bool {
        let free = self.places.iter().enumerate().find(|(_, place)| place.range().is_empty());
        let Some((index, place)) = free else {
            self.is_full.store(true, Ordering::Relaxed);
            return false;
        };
        place.fill(range);
        self.used.fetch_max(index + 1, Ordering::AcqRel);
        true
    }

    /// Takes a range out. Returns whether something of it was there.
    pub fn remove(&self, range: &Range<usize>) -> bool {
        if !self.has(range) {
            return false;
        }
        with_signals_blocked(|| {
            let _held = self.lock.hold();
            for place in self.overlapping(range) {
                let had = place.range();
                let behind = range.end.min(had.end)..had.end;
                // One word changes at a time, so that other threads find what stays.
                if range.start <= had.start {
                    place.start.store(behind.start, Ordering::Release);
                } else {
                    if !behind.is_empty() && !self.put(&behind) {
                        advice::as_by_itself(&behind);
                    }
                    place.end.store(range.start, Ordering::Release);
                }
            }
        });
        true
    }

    /// Frees the lock in the child of a fork.
    pub fn release_after_fork(&self) {
        self.lock.release_after_fork();
    }
}
