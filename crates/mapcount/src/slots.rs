//! Which mms own a folio, as far as two slots can tell: the rules, without atomics.

use crate::broken::Broken;
use crate::mm_id::MmId;

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
        let taken = || (0..2).find(|&slot| R::may_take(self.counts[slot], self.shared));
        if let Some(slot) = self.slot_of(mm).or_else(taken) {
            self.ids[slot] = mm.get();
            self.counts[slot] += more;
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
        if let Some(slot) = self.slot_of(mm) {
            let had = left[slot].checked_sub(fewer);
            left[slot] = had.ok_or(Broken::NotMappedByMm { mm: mm.get() })?;
        }
        // Those without a slot have what the slots do not.
        if u64::from(left[0]) + u64::from(left[1]) > u64::from(mappings) {
            return Err(Broken::NotMappedByMm { mm: mm.get() });
        }
        self.counts = left;
        self.mark::<R>(mappings);
        Ok(())
    }

    /// Whether `mm` is known to have all `mappings` mappings of the folio.
    #[inline]
    pub fn owned_by<R: SlotRules>(&self, mm: MmId, mappings: u32) -> bool {
        let count = self.slot_of(mm).map_or(0, |slot| self.counts[slot]);
        count > 0 && R::owns_all(count, mappings)
    }

    #[inline]
    fn slot_of(&self, mm: MmId) -> Option<usize> {
        (0..2).find(|&slot| self.ids[slot] == mm.get())
    }

    #[inline]
    fn mark<R: SlotRules>(&mut self, mappings: u32) {
        self.shared = R::marks(self.counts.iter().any(|&count| R::owns_all(count, mappings)));
    }
}
