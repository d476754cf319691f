//! The slots of a folio with its number of mappings, in memory that threads share.

use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::atomics::{Atomic, Atomics};
use crate::broken::Broken;
use crate::lock::locked;
use crate::mapcount::Counts;
use crate::mm_id::MmId;
use crate::slots::{SlotRules, Slots};

/// Most mappings, so that no sum of two counts overflows.
pub const MAX_MAPPINGS: u32 = i32::MAX as u32;

/// Two owners of a folio, the number of its mappings and of those of the whole folio.
///
/// Everything is changed under one lock, a bit of the word with the ids. A change is one
/// read-modify-write for the lock, and loads and stores while it is held, however many pages it is
/// about. Whether the folio may be shared is a bit of the same word, and is read without the lock.
pub struct Owners<A: Atomics, R> {
    /// The ids of both slots, 20 bits each, the mark at bit 62 and the lock at bit 63.
    ids: A::U64,
    /// Mappings of the mms in both slots, 32 bits each.
    counts: A::U64,
    /// The number of mappings, and above its 32 bits that of the whole folio.
    mapped: A::U64,
    rules: PhantomData<R>,
}

const SHARED: u64 = 1 << 62;
const ID_MASK: u64 = (1 << MmId::BITS) - 1;

impl<A: Atomics, R> Default for Owners<A, R> {
    fn default() -> Self {
        Owners {
            ids: A::U64::default(),
            counts: A::U64::default(),
            mapped: A::U64::default(),
            rules: PhantomData,
        }
    }
}

impl<A: Atomics, R: SlotRules> Owners<A, R> {
    /// `mm` has so many `more` mappings, so many of them `entire`.
    #[inline]
    pub fn map(&self, mm: MmId, more: u32, entire: u32) -> Counts {
        locked::<A, _>(&self.ids, |ids| {
            let (old, old_entire) = self.mapped();
            let new = old.checked_add(more).filter(|&new| new <= MAX_MAPPINGS);
            let new = new.ok_or(Broken::TooManyMappings { most: MAX_MAPPINGS })?;
            let mut slots = self.slots(ids);
            slots.map::<R>(mm, more, new);
            let counts = Counts { old, new, old_entire, new_entire: old_entire + entire };
            Ok((self.keep(slots, counts), counts))
        })
    }

    /// `mm` has so many `fewer` mappings, so many of them `entire`.
    #[inline]
    pub fn unmap(&self, mm: MmId, fewer: u32, entire: u32) -> Counts {
        locked::<A, _>(&self.ids, |ids| {
            let (old, old_entire) = self.mapped();
            let new = old.checked_sub(fewer).ok_or(Broken::NotMapped)?;
            let new_entire = old_entire.checked_sub(entire).ok_or(Broken::NotMappedEntirely)?;
            if new_entire > new {
                return Err(Broken::NotMapped);
            }
            let mut slots = self.slots(ids);
            slots.unmap::<R>(mm, fewer, new)?;
            let counts = Counts { old, new, old_entire, new_entire };
            Ok((self.keep(slots, counts), counts))
        })
    }

    /// How many mappings there are, if `mm` is known to have all of them and there is one.
    #[inline]
    pub fn owned_by(&self, mm: MmId) -> Option<u32> {
        // The mark only says who may look further: it is of one moment, the counts of another.
        if self.maybe_shared() || self.mappings() == 0 {
            return None;
        }
        locked::<A, _>(&self.ids, |ids| {
            let (mappings, _) = self.mapped();
            let owned = self.slots(ids).owned_by::<R>(mm, mappings);
            Ok((ids, owned.then_some(mappings)))
        })
    }

    /// Whether the folio is marked as shared.
    #[inline]
    pub fn maybe_shared(&self) -> bool {
        self.ids.load(Acquire) & SHARED != 0
    }

    /// How many mappings there are.
    #[inline]
    pub fn mappings(&self) -> u32 {
        self.mapped().0
    }

    /// How many of them are of the whole folio.
    #[inline]
    pub fn entire(&self) -> u32 {
        self.mapped().1
    }

    #[inline]
    fn mapped(&self) -> (u32, u32) {
        halves(self.mapped.load(Relaxed))
    }

    #[inline]
    fn slots(&self, ids: u64) -> Slots {
        Slots {
            ids: [(ids & ID_MASK) as u32, (ids >> MmId::BITS & ID_MASK) as u32],
            counts: halves(self.counts.load(Relaxed)).into(),
            shared: ids & SHARED != 0,
        }
    }

    /// Stores all but the word with the lock, and returns what that will be.
    #[inline]
    fn keep(&self, slots: Slots, counts: Counts) -> u64 {
        self.mapped.store(whole([counts.new, counts.new_entire]), Relaxed);
        self.counts.store(whole(slots.counts), Relaxed);
        let mark = if slots.shared { SHARED } else { 0 };
        mark | u64::from(slots.ids[0]) | u64::from(slots.ids[1]) << MmId::BITS
    }
}

#[inline]
fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> u32::BITS) as u32)
}

#[inline]
fn whole([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << u32::BITS
}
