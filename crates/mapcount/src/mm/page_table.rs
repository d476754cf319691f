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
const WRITABLE: u64 = 2;
const PFN_SHIFT: u32 = 12;

impl Entry {
    /// What it maps.
    #[inline]
    pub fn load(&self) -> Option<Mapped> {
        mapped(self.0.load(Relaxed))
    }

    /// Maps something where nothing was, or what is known not to be changed by the processor.
    #[inline]
    pub fn set(&self, to: Mapped) {
        let writable = if to.writable { WRITABLE } else { 0 };
        self.0.store(u64::from(to.pfn) << PFN_SHIFT | writable | PRESENT, Relaxed);
    }

    /// Takes the entry away, with a read-modify-write, as the processor may set bits of it.
    #[inline]
    pub fn clear(&self) {
        self.0.swap(0, Relaxed);
    }

    /// Writes are faults from now on. Also a read-modify-write.
    #[inline]
    pub fn protect(&self) {
        self.0.fetch_and(!WRITABLE, Relaxed);
    }
}

#[inline]
fn mapped(entry: u64) -> Option<Mapped> {
    let writable = entry & WRITABLE != 0;
    (entry & PRESENT != 0).then_some(Mapped { pfn: (entry >> PFN_SHIFT) as Pfn, writable })
}

/// The first of `entries`, and how many of them map the pages behind it in the same folio.
///
/// Mirrors `folio_pte_batch`, 6.12. Test: `tests/address_spaces.rs`.
#[inline]
pub fn batch<C: Mapcount>(entries: &[Entry], frame: &Frame<C>, first: Mapped) -> u32 {
    let folio_end = frame.head() + frame.order().pages() as Pfn;
    let most = ((folio_end - first.pfn) as usize).min(entries.len());
    let follows = |(index, entry): &(usize, &Entry)| {
        entry.load() == Some(Mapped { pfn: first.pfn + *index as Pfn, ..first })
    };
    entries[..most].iter().enumerate().take_while(follows).count() as u32
}
