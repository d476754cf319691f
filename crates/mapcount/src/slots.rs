//! Which mms own a folio, as far as two slots can tell: the rules, without atomics.

use crate::broken::Broken;
use crate::mm_id::MmId;
use crate::owners::{OwnerRules, Words, halves, whole};

/// The rules by which slots are handed over, one a function, so that a test can break one.
pub trait SlotRules: Send + Sync + 'static {
    /// Whether an mm that has no slot may take one with this count.
    #[inline]
    fn may_take(count: u32, shared: bool) -> bool {
        count == 0 && !shared
    }

    /// Whether a slot with this count has all the mappings of the folio.
    #[inline]
    fn owns_all(count: u32, mappings: u32) -> bool {
        count == mappings
    }

    /// Whether the folio is marked as shared, where no slot has all its mappings.
    #[inline]
    fn marks(some_slot_owns_all: bool) -> bool {
        !some_slot_owns_all
    }
}

/// The rules as published.
pub struct Published;

impl SlotRules for Published {}

/// Two mms with their mappings, and whether there may be more.
///
/// The count of a slot is never more than the mappings of its mm, whatever came before. For an mm
/// that takes a slot has no other mappings: the folio is not marked, so one slot had all mappings
/// or there were none. From then on all of the mm's mappings are counted in the slot, which nobody
/// else takes before they are gone. So a slot whose count is the number of all mappings belongs to
/// the only mm that maps the folio: *exclusive* is always true.
///
/// *Shared* may be false, as an mm that found no slot is not known when the others have left.
/// This needs a third mm: of two, each has a slot.
///
/// Mirrors `folio_add_large_mapcount` and `folio_sub_large_mapcount`, 6.18.
/// Test: `tests/every_history.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Slots {
    /// Id of the mm that has the slot, or had it last; 0 if none ever had.
    pub ids: [u32; 2],
    /// Mappings of that mm.
    pub counts: [u32; 2],
    /// More than one mm may map the folio.
    pub shared: bool,
}

impl Slots {
    /// `mm` has so many `more` mappings, and the folio has `mappings` of them now.
    #[inline]
    pub fn map<R: SlotRules>(&mut self, mm: MmId, more: u32, mappings: u32) {
        let taken = || {
            let may_take = |slot: usize| R::may_take(self.counts[slot], self.shared);
            if may_take(0) { Some(0) } else { may_take(1).then_some(1) }
        };
        match self.slot_of(mm).or_else(taken) {
            Some(0) => self.count::<0>(mm, more),
            Some(_) => self.count::<1>(mm, more),
            None => {}
        }
        self.mark::<R>(mappings);
    }

    /// `mm` has so many `fewer` mappings, and the folio still has `mappings` of them.
    ///
    /// # Errors
    /// When `mm` had not so many, as far as the slots can tell. Nothing is changed then.
    #[inline]
    pub fn unmap<R: SlotRules>(
        &mut self,
        mm: MmId,
        fewer: u32,
        mappings: u32,
    ) -> Result<(), Broken> {
        let mut left = self.counts;
        let had = match self.slot_of(mm) {
            Some(0) => take::<0>(&mut left, fewer),
            Some(_) => take::<1>(&mut left, fewer),
            None => true,
        };
        // Those without a slot have what the slots do not.
        if !had || u64::from(left[0]) + u64::from(left[1]) > u64::from(mappings) {
            return Err(Broken::NotMappedByMm { mm: mm.get() });
        }
        self.counts = left;
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
    fn unpack(Words { free, shared, second }: Words) -> Slots {
        let ids = [(free & ID_MASK) as u32, (free >> MmId::BITS) as u32];
        Slots { ids, counts: halves(second).into(), shared }
    }

    #[inline]
    fn pack(self) -> Words {
        let free = u64::from(self.ids[0]) | u64::from(self.ids[1]) << MmId::BITS;
        Words { free, shared: self.shared, second: whole(self.counts) }
    }

    #[inline]
    fn slot_of(&self, mm: MmId) -> Option<usize> {
        if self.ids[0] == mm.get() { Some(0) } else { (self.ids[1] == mm.get()).then_some(1) }
    }

    /// Slots are named by constants, so that they stay in registers while the lock is held.
    #[inline]
    fn count<const SLOT: usize>(&mut self, mm: MmId, more: u32) {
        self.ids[SLOT] = mm.get();
        self.counts[SLOT] += more;
    }

    #[inline]
    fn mark<R: SlotRules>(&mut self, mappings: u32) {
        let owns = |slot: usize| R::owns_all(self.counts[slot], mappings);
        self.shared = R::marks(owns(0) || owns(1));
    }
}

const ID_MASK: u64 = (1 << MmId::BITS) - 1;

/// The ids of both slots beside the lock, and their counts in the other word.
impl<R: SlotRules> OwnerRules for R {
    #[inline]
    fn map(words: Words, mm: MmId, more: u32, mappings: u32) -> Words {
        let mut slots = Slots::unpack(words);
        slots.map::<R>(mm, more, mappings);
        slots.pack()
    }

    #[inline]
    fn unmap(words: Words, mm: MmId, fewer: u32, mappings: u32) -> Result<Words, Broken> {
        let mut slots = Slots::unpack(words);
        slots.unmap::<R>(mm, fewer, mappings)?;
        Ok(slots.pack())
    }

    #[inline]
    fn owned_by(words: Words, mm: MmId, mappings: u32) -> bool {
        Slots::unpack(words).owned_by::<R>(mm, mappings)
    }
}

/// Takes `fewer` from one of the counts. Whether there were as many.
#[inline]
fn take<const SLOT: usize>(counts: &mut [u32; 2], fewer: u32) -> bool {
    let had = counts[SLOT] >= fewer;
    counts[SLOT] = counts[SLOT].wrapping_sub(fewer);
    had
}
