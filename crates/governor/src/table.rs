//! The mappings that are governed.
//!
//! Hooks change the table, under its lock and with signals blocked. Handlers look mappings up
//! without it, and take only the lock of the mapping that they have found.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::policy::{Bounds, Pages, State};
use filemap_control::layout::MAPPINGS;

use crate::lock::{Held, Lock};

/// A mapping as hooks describe it.
#[derive(Clone, Debug)]
pub struct Mapping {
    pub range: Range<usize>,
    /// Where `range` begins in its file, in pages.
    pub first_page: u64,
    /// Pages of the file.
    pub file_pages: u64,
    /// The most pages that the kernel reads for one call.
    pub call_pages: u64,
}

/// A place in the table. Where `end` is 0 it is free.
pub struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    first_page: AtomicU64,
    file_pages: AtomicU64,
    call_pages: AtomicU64,
    /// Calls that it is lent to: while there are any it has the kernel's own advice.
    lent: AtomicU32,
    lock: Lock,
    state: UnsafeCell<State>,
}

// SAFETY: `state` is only reached through `Known`, which has the lock.
unsafe impl Sync for Slot {}

/// What is known of a mapping, while its lock is held.
pub struct Known<'a> {
    slot: &'a Slot,
    _held: Held<'a>,
}

impl Slot {
    const fn free() -> Slot {
        Slot {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            first_page: AtomicU64::new(0),
            file_pages: AtomicU64::new(0),
            call_pages: AtomicU64::new(1),
            lent: AtomicU32::new(0),
            lock: Lock::new(),
            state: UnsafeCell::new(State::new(0)),
        }
    }

    /// The addresses of its mapping; empty where it is free.
    pub fn range(&self) -> Range<usize> {
        let end = self.end.load(Ordering::Acquire);
        self.start.load(Ordering::Acquire)..end
    }

    pub fn mapping(&self) -> Mapping {
        Mapping {
            range: self.range(),
            first_page: self.first_page.load(Ordering::Relaxed),
            file_pages: self.file_pages.load(Ordering::Relaxed),
            call_pages: self.call_pages.load(Ordering::Relaxed),
        }
    }

    pub fn is_free(&self) -> bool {
        self.range().is_empty()
    }

    /// What is known of its mapping, if no other thread has it just now.
    pub fn try_known(&self) -> Option<Known<'_>> {
        self.lock.try_hold().map(|held| Known { slot: self, _held: held })
    }

    /// The same, after waiting. Signals are blocked in this thread.
    pub fn known(&self) -> Known<'_> {
        Known { slot: self, _held: self.lock.hold() }
    }

    /// One more call has it. The table's lock is held.
    pub fn lend(&self) {
        self.lent.fetch_add(1, Ordering::Relaxed);
    }

    /// A call gives it back. Returns whether no other one has it. The table's lock is held.
    pub fn take_back(&self) -> bool {
        // It is 0 already in the child of a fork that a signal handler made within a call.
        let left = self.lent.load(Ordering::Relaxed).saturating_sub(1);
        self.lent.store(left, Ordering::Relaxed);
        left == 0
    }

    /// Frees the lock in the child of a fork, and takes back what other threads were lent.
    pub fn release_after_fork(&self) {
        self.lent.store(0, Ordering::Relaxed);
        self.lock.release_after_fork();
    }
}

impl Known<'_> {
    pub fn mapping(&self) -> Mapping {
        self.slot.mapping()
    }

    pub fn state(&mut self) -> &mut State {
        // SAFETY: the lock is held, and the borrow of `self` keeps a second one away.
        unsafe { &mut *self.slot.state.get() }
    }

    /// What bounds the policy. A file that has pages beyond those that were known has grown by an
    /// unknown amount: then the mapping alone bounds it.
    pub fn bounds(&self, page: u64, page_size: usize) -> Bounds {
        let Mapping { range, first_page, file_pages, .. } = self.mapping();
        let end = first_page.saturating_add((range.len() / page_size) as u64);
        if page >= file_pages {
            self.slot.file_pages.store(end, Ordering::Relaxed);
        }
        let file_pages = if page >= file_pages { end } else { file_pages };
        Bounds { mapping: Pages { first: first_page, end }, file_pages }
    }

    /// Begins with `mapping`, of which `state` is known.
    pub fn begin(&mut self, mapping: &Mapping, state: State) {
        *self.state() = state;
        self.slot.first_page.store(mapping.first_page, Ordering::Relaxed);
        self.slot.file_pages.store(mapping.file_pages, Ordering::Relaxed);
        self.slot.call_pages.store(mapping.call_pages.max(1), Ordering::Relaxed);
        self.slot.start.store(mapping.range.start, Ordering::Release);
        self.slot.end.store(mapping.range.end, Ordering::Release);
    }

    /// Leaves it only `range`, a part of what it had; it is free where that is empty.
    pub fn keep(&mut self, range: &Range<usize>, page_size: usize) {
        let had = self.slot.range();
        let skipped = range.start.saturating_sub(had.start) / page_size;
        self.slot.first_page.fetch_add(skipped as u64, Ordering::Relaxed);
        self.slot.start.store(range.start, Ordering::Release);
        let end = if range.is_empty() { 0 } else { range.end };
        self.slot.end.store(end, Ordering::Release);
    }
}

/// The table.
pub struct Table {
    /// Slots behind the last one that was ever used: no other is looked at.
    used: AtomicUsize,
    lock: Lock,
    slots: [Slot; MAPPINGS],
}

pub static TABLE: Table = Table {
    used: AtomicUsize::new(0),
    lock: Lock::new(),
    slots: [const { Slot::free() }; MAPPINGS],
};

impl Table {
    /// The slots that may have a mapping, with their numbers.
    pub fn used(&self) -> impl Iterator<Item = (usize, &Slot)> {
        let used = self.used.load(Ordering::Acquire);
        self.slots.iter().enumerate().take(used)
    }

    /// A slot by its number.
    pub fn slot(&self, number: usize) -> Option<&Slot> {
        self.slots.get(number)
    }

    /// The slots whose mapping has an address of `range`.
    pub fn overlapping(&self, range: Range<usize>) -> impl Iterator<Item = (usize, &Slot)> {
        self.used().filter(move |(_, slot)| {
            let has = slot.range();
            has.start < range.end && range.start < has.end
        })
    }

    /// Whether nothing is governed.
    pub fn is_empty(&self) -> bool {
        self.used().all(|(_, slot)| slot.is_free())
    }

    /// All slots, for who has the lock and looks for a free one.
    pub fn slots(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.slots.iter().enumerate()
    }

    /// Says that slot `number` is used from now on.
    pub fn note_used(&self, number: usize) {
        self.used.fetch_max(number.saturating_add(1), Ordering::AcqRel);
    }

    /// The lock of who changes which slots are free. Signals are blocked in this thread.
    pub fn hold(&self) -> Held<'_> {
        self.lock.hold()
    }

    /// Frees all locks in the child of a fork.
    pub fn release_after_fork(&self) {
        self.lock.release_after_fork();
        self.slots.iter().for_each(Slot::release_after_fork);
    }
}
