//! Page tables: entries in tables of 512.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::frame::{Frame, Pfn};
use crate::mapcount::Mapcount;

/// Entries of a table.
pub const ENTRIES: usize = 512;

/// An entry that a processor may use and change at any time.
#[derive(Default)]
pub struct Entry(AtomicU64);

/// What is in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    pub pfn: Pfn,
    pub writable: bool,
}

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
/// A page that was written to before it was made read-only.
const SAVED_DIRTY: u64 = 1 << 58;
const PFN_SHIFT: u32 = 12;

/// Bits in which entries of a batch may differ.
const IGNORED: u64 = WRITABLE | ACCESSED | DIRTY | SAVED_DIRTY;

impl Entry {
    /// What it maps.
    #[inline]
    pub fn load(&self) -> Option<Mapped> {
        let entry = self.0.load(Relaxed);
        let pfn = ((entry & !SAVED_DIRTY) >> PFN_SHIFT) as Pfn;
        (entry & PRESENT != 0).then_some(Mapped { pfn, writable: entry & WRITABLE != 0 })
    }

    /// Maps something where nothing was, or what is known not to be changed by the processor.
    #[inline]
    pub fn set(&self, to: Mapped) {
        let bits = if to.writable { WRITABLE | ACCESSED | DIRTY } else { 0 };
        self.0.store(u64::from(to.pfn) << PFN_SHIFT | bits | PRESENT, Relaxed);
    }

    /// What the processor does when somebody writes through the entry.
    #[inline]
    pub fn touch(&self) {
        let entry = self.0.load(Relaxed);
        if entry & (ACCESSED | DIRTY) != ACCESSED | DIRTY {
            self.0.fetch_or(ACCESSED | DIRTY, Relaxed);
        }
    }

    /// Takes the entry away, with a read-modify-write, as the processor may set bits of it.
    #[inline]
    pub fn clear(&self) {
        self.0.swap(0, Relaxed);
    }

    /// Writes are faults from now on. Also a read-modify-write, which keeps what the processor
    /// says of earlier writes.
    ///
    /// Mirrors `ptep_set_wrprotect`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub fn protect(&self) {
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

/// Entries that map neighbouring pages of a folio.
pub struct Batch {
    /// How many.
    pub pages: u32,
    /// One of them can be written to.
    pub writable: bool,
}

/// The first of `entries`, and how many of them map the pages after it in the same folio.
///
/// Mirrors `folio_pte_batch`, 6.12. Test: `tests/address_spaces.rs`.
#[inline]
pub fn batch<C: Mapcount>(entries: &[Entry], frame: &Frame<C>, first: Mapped) -> Batch {
    let folio_end = frame.head() + frame.order().pages() as Pfn;
    let most = ((folio_end - first.pfn) as usize).min(entries.len());
    let mut expected = entries[0].0.load(Relaxed) & !IGNORED;
    let (mut pages, mut bits) = (0, 0);
    for entry in &entries[..most] {
        let entry = entry.0.load(Relaxed);
        if entry & !IGNORED != expected {
            break;
        }
        bits |= entry;
        expected += 1 << PFN_SHIFT;
        pages += 1;
    }
    Batch { pages, writable: bits & WRITABLE != 0 }
}

/// Takes entries away, and returns whether one of them was written to.
///
/// Mirrors `get_and_clear_full_ptes`, 6.12. Test: `tests/address_spaces.rs`.
#[inline]
pub fn clear(entries: &[Entry]) -> bool {
    let mut bits = 0;
    for entry in entries {
        bits |= entry.0.swap(0, Relaxed);
    }
    bits & (DIRTY | SAVED_DIRTY) != 0
}
