//! Owners in two slots: the rules, without atomics.

use crate::error::Misuse;
use crate::mm_id::MmId;
use crate::owners::{OwnerRules, OwnerWords, join_word, split_word};

/// The rules of the slots, each a function so that tests can break it.
pub trait SlotRules: Send + Sync + 'static {
    /// Whether an mm without a slot may take one with this count.
    #[inline]
    fn may_take(count: u32, shared: bool) -> bool {
        count == 0 && !shared
    }

    /// Whether a slot with this count has all mappings of the folio.
    #[inline]
    fn owns_all(count: u32, mappings: u32) -> bool {
        count == mappings
    }

    /// Whether the folio is marked as shared.
    #[inline]
    fn marks(some_slot_owns_all: bool) -> bool {
        !some_slot_owns_all
    }
}

/// The rules as published.
pub struct PublishedRules;

impl SlotRules for PublishedRules {}

/// Two mms with their mappings, and whether there may be more.
///
/// Invariant: the count of a slot is at most the number of mappings of its mm. An mm that takes a
/// slot has no other mappings, because the folio is not marked: one slot had all mappings, or there
/// were none. From then on the slot counts all mappings of the mm, and no other mm takes it before
/// they are gone. So if a slot's count is the number of all mappings, its mm is the only one:
/// *exclusive* is always right.
///
/// *Shared* may be wrong: an mm that found no slot is unknown after the others have left. This
/// takes a third mm, since each of two has a slot.
///
/// Mirrors `folio_add_large_mapcount` and `folio_sub_large_mapcount`, 6.18.
/// Test: `tests/every_history.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Slots {
    /// Id of the mm that has the slot or had it last; 0 if none ever had.
    pub ids: [u32; 2],
    /// Mappings of that mm.
    pub counts: [u32; 2],
    /// More than one mm may map the folio.
    pub shared: bool,
}

impl Slots {
    /// Adds `count` mappings of `mm`; the folio has `mappings` afterwards.
    #[inline]
    pub fn map<R: SlotRules>(&mut self, mm: MmId, count: u32, mappings: u32) {
        let free_slot = || {
            let may_take = |slot: usize| R::may_take(self.counts[slot], self.shared);
            if may_take(0) { Some(0) } else { may_take(1).then_some(1) }
        };
        match self.slot_of(mm).or_else(free_slot) {
            Some(0) => self.add::<0>(mm, count),
            Some(_) => self.add::<1>(mm, count),
            None => {}
        }
        self.mark::<R>(mappings);
    }

    /// Removes `count` mappings of `mm`; the folio has `mappings` afterwards.
    ///
    /// # Errors
    /// When `mm` had fewer, as far as the slots can tell. Nothing is changed then.
    #[inline]
    pub fn unmap<R: SlotRules>(
        &mut self,
        mm: MmId,
        count: u32,
        mappings: u32,
    ) -> Result<(), Misuse> {
        let mut counts = self.counts;
        let had_enough = match self.slot_of(mm) {
            Some(0) => subtract::<0>(&mut counts, count),
            Some(_) => subtract::<1>(&mut counts, count),
            None => true,
        };
        // Mms without a slot have the mappings that the slots do not.
        if !had_enough || u64::from(counts[0]) + u64::from(counts[1]) > u64::from(mappings) {
            return Err(Misuse::NotMappedByMm { mm: mm.get() });
        }
        self.counts = counts;
        self.mark::<R>(mappings);
        Ok(())
    }

    /// Whether `mm` is known to have all `mappings` mappings of the folio.
    #[inline]
    pub fn owned_by<R: SlotRules>(&self, mm: MmId, mappings: u32) -> bool {
        let count = match self.slot_of(mm) {
            Some(0) => self.counts[0],
            Some(_) => self.counts[1],
            None => 0,
        };
        count > 0 && R::owns_all(count, mappings)
    }

    #[inline]
    fn unpack(OwnerWords { first, shared, second }: OwnerWords) -> Slots {
        let ids = [(first & ID_MASK) as u32, (first >> MmId::BITS) as u32];
        Slots { ids, counts: split_word(second), shared }
    }

    #[inline]
    fn pack(self) -> OwnerWords {
        let first = u64::from(self.ids[0]) | u64::from(self.ids[1]) << MmId::BITS;
        OwnerWords { first, shared: self.shared, second: join_word(self.counts) }
    }

    #[inline]
    fn slot_of(&self, mm: MmId) -> Option<usize> {
        if self.ids[0] == mm.get() { Some(0) } else { (self.ids[1] == mm.get()).then_some(1) }
    }

    /// The slot is a constant, so that slots stay in registers while the lock is held.
    #[inline]
    fn add<const SLOT: usize>(&mut self, mm: MmId, count: u32) {
        self.ids[SLOT] = mm.get();
        self.counts[SLOT] += count;
    }

    #[inline]
    fn mark<R: SlotRules>(&mut self, mappings: u32) {
        let owns = |slot: usize| R::owns_all(self.counts[slot], mappings);
        self.shared = R::marks(owns(0) || owns(1));
    }
}

const ID_MASK: u64 = (1 << MmId::BITS) - 1;

/// The ids of both slots are in the first word, their counts in the second.
impl<R: SlotRules> OwnerRules for R {
    #[inline]
    fn map(words: OwnerWords, mm: MmId, count: u32, mappings: u32) -> OwnerWords {
        let mut slots = Slots::unpack(words);
        slots.map::<R>(mm, count, mappings);
        slots.pack()
    }

    #[inline]
    fn unmap(words: OwnerWords, mm: MmId, count: u32, mappings: u32) -> Result<OwnerWords, Misuse> {
        let mut slots = Slots::unpack(words);
        slots.unmap::<R>(mm, count, mappings)?;
        Ok(slots.pack())
    }

    #[inline]
    fn owned_by(words: OwnerWords, mm: MmId, mappings: u32) -> bool {
        Slots::unpack(words).owned_by::<R>(mm, mappings)
    }
}

/// Subtracts from one of the counts. Returns whether it was large enough.
#[inline]
fn subtract<const SLOT: usize>(counts: &mut [u32; 2], count: u32) -> bool {
    let is_enough = counts[SLOT] >= count;
    counts[SLOT] = counts[SLOT].wrapping_sub(count);
    is_enough
}
