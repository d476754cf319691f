//! Page tables: tables of 512 entries.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::frame::{Frame, Pfn};
use crate::mapcount::Mapcount;

/// Entries of a table (`PTRS_PER_PTE`).
pub const PTES_PER_TABLE: usize = 512;

/// A page-table entry, which a processor may use and change at any time.
#[derive(Default)]
pub struct Pte(AtomicU64);

/// The value of a present entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PteValue {
    pub pfn: Pfn,
    pub writable: bool,
}

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
/// The page was written to before it was made read-only.
const SAVED_DIRTY: u64 = 1 << 58;
const PFN_SHIFT: u32 = 12;

/// Bits that may differ within a batch.
const IGNORED: u64 = WRITABLE | ACCESSED | DIRTY | SAVED_DIRTY;

impl Pte {
    /// The value, if the entry is present.
    #[inline]
    pub fn load(&self) -> Option<PteValue> {
        let entry = self.0.load(Relaxed);
        let pfn = ((entry & !SAVED_DIRTY) >> PFN_SHIFT) as Pfn;
        (entry & PRESENT != 0).then_some(PteValue { pfn, writable: entry & WRITABLE != 0 })
    }

    /// Sets an entry that was not present, or that the processor cannot change now.
    #[inline]
    pub fn set(&self, to: PteValue) {
        let bits = if to.writable { WRITABLE | ACCESSED | DIRTY } else { 0 };
        self.0.store(u64::from(to.pfn) << PFN_SHIFT | bits | PRESENT, Relaxed);
    }

    /// Sets the accessed and dirty bits, as the processor does on a write.
    #[inline]
    pub fn mark_dirty(&self) {
        let entry = self.0.load(Relaxed);
        if entry & (ACCESSED | DIRTY) != ACCESSED | DIRTY {
            self.0.fetch_or(ACCESSED | DIRTY, Relaxed);
        }
    }

    /// Clears the entry by a read-modify-write, since the processor may set bits.
    #[inline]
    pub fn clear(&self) {
        self.0.swap(0, Relaxed);
    }

    /// Makes the entry read-only by a read-modify-write, which keeps the dirty bit.
    ///
    /// Mirrors `ptep_set_wrprotect`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub fn write_protect(&self) {
        let mut old = self.0.load(Relaxed);
        while let Err(now) = self.0.compare_exchange(old, protected(old), Relaxed, Relaxed) {
            old = now;
        }
    }
}

#[inline]
fn protected(entry: u64) -> u64 {
    let saved = if entry & DIRTY != 0 { SAVED_DIRTY } else { 0 };
    entry & !(WRITABLE | DIRTY) | saved
}

/// Entries that map consecutive pages of a folio.
pub struct PteBatch {
    /// Number of entries.
    pub pages: u32,
    /// One of them is writable.
    pub writable: bool,
}

/// The batch that starts with the first of `entries`, whose value is `first`.
///
/// Mirrors `folio_pte_batch`, 6.12. Test: `tests/address_spaces.rs`.
#[inline]
pub fn pte_batch<C: Mapcount>(entries: &[Pte], frame: &Frame<C>, first: PteValue) -> PteBatch {
    let folio_end = frame.head() + frame.order().pages() as Pfn;
    let max = ((folio_end - first.pfn) as usize).min(entries.len());
    let mut expected = entries[0].0.load(Relaxed) & !IGNORED;
    let (mut pages, mut bits) = (0, 0);
    for entry in &entries[..max] {
        let entry = entry.0.load(Relaxed);
        if entry & !IGNORED != expected {
            break;
        }
        bits |= entry;
        expected += 1 << PFN_SHIFT;
        pages += 1;
    }
    PteBatch { pages, writable: bits & WRITABLE != 0 }
}

/// Clears entries. Returns whether one of their pages was written to.
///
/// Mirrors `get_and_clear_full_ptes`, 6.12. Test: `tests/address_spaces.rs`.
#[inline]
pub fn clear_batch(entries: &[Pte]) -> bool {
    let mut bits = 0;
    for entry in entries {
        bits |= entry.0.swap(0, Relaxed);
    }
    bits & (DIRTY | SAVED_DIRTY) != 0
}
