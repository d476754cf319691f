//! The mappings that are advised in place of the program.

use std::cell::UnsafeCell;
use std::ops::Range;

use crate::disposition::with_signals_blocked;
use crate::lock::Lock;

/// The most mappings. Of more the program's own advice is carried out as well.
const MOST: usize = 1024;

/// Ranges of addresses; an empty one is free.
type Ranges = [Range<usize>; MOST];

/// The mappings, which no handler of the library's asks for.
pub struct Mappings {
    lock: Lock,
    ranges: UnsafeCell<Ranges>,
}

// SAFETY: `ranges` is only reached with the lock.
unsafe impl Sync for Mappings {}

pub static MAPPINGS: Mappings =
    Mappings { lock: Lock::new(), ranges: UnsafeCell::new([const { 0..0 }; MOST]) };

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Mappings {
    fn with<R>(&self, work: impl FnOnce(&mut Ranges) -> R) -> R {
        with_signals_blocked(|| {
            let _held = self.lock.hold();
            // SAFETY: the lock is held.
            work(unsafe { &mut *self.ranges.get() })
        })
    }

    /// Whether something of `range` is one of them.
    pub fn has(&self, range: &Range<usize>) -> bool {
        self.with(|ranges| ranges.iter().any(|own| overlap(own, range)))
    }

    /// Adds a range in place of what was known of it.
    pub fn add(&self, range: &Range<usize>) {
        self.with(|ranges| {
            remove(ranges, range);
            put(ranges, range.clone());
        });
    }

    /// Takes a range out.
    pub fn remove(&self, range: &Range<usize>) {
        self.with(|ranges| remove(ranges, range));
    }

    /// Frees the lock in the child of a fork.
    pub fn release_after_fork(&self) {
        self.lock.release_after_fork();
    }
}

fn put(ranges: &mut Ranges, range: Range<usize>) {
    if let Some(free) = ranges.iter_mut().find(|own| Range::is_empty(own)) {
        *free = range;
    }
}

fn remove(ranges: &mut Ranges, range: &Range<usize>) {
    // A range that is cut in two leaves its second part for another place.
    while let Some(own) = ranges.iter_mut().find(|own| overlap(own, range)) {
        let had = own.clone();
        *own = had.start..range.start.max(had.start);
        put(ranges, range.end.min(had.end)..had.end);
    }
}
