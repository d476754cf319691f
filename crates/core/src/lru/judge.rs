//! Reclaim's decision on each folio.

use crate::address::entries::Layer;
use crate::address::reverse_map::FileMappings;
use crate::units::PageIndex;
use crate::word::{WORD_PAGES, word_mask};

/// Decisions on base pages of one word at the tail of the inactive list. The masks are disjoint and
/// cover the judged pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageVerdicts {
    /// Evicted.
    pub evict: u64,
    /// Rotated to the head of the inactive list, now referenced.
    pub keep: u64,
    /// Moved to the active list.
    pub activate: u64,
}

/// Judges base pages. `young`: accessed; `referenced`: seen young before, or accessed through
/// several VMAs; `executable`: mapped by an executable VMA.
///
/// Mirrors `folio_check_references`, 6.12 and 6.18. Test: `tests/reclaim.rs`.
pub fn judge_pages(pages: u64, young: u64, referenced: u64, executable: u64) -> PageVerdicts {
    let young = young & pages;
    let activate = young & (referenced | executable);
    PageVerdicts { evict: pages & !young, keep: young & !activate, activate }
}

/// Decision on one folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolioVerdict {
    /// It is evicted.
    Evict,
    /// It is rotated to the head of the inactive list, now referenced.
    Keep,
    /// It moves to the active list.
    Activate,
}

/// Summary of the accessed entries of one folio, collected layer by layer, in ascending page order.
///
/// Mirrors `folio_referenced`, 6.12 and 6.18: however many entries of one VMA were accessed, they
/// count once. (Seen on 6.18: 64 MiB of large folios, each mapped by many accessed entries of one
/// VMA, went round the inactive list and none became active.) Test: `tests/reclaim.rs`.
#[derive(Debug)]
pub struct Referenced<'a> {
    mappings: &'a FileMappings,
    /// The last VMA with an accessed entry, by layer and first page.
    last: Option<(Layer, PageIndex)>,
    /// Number of VMAs with an accessed entry.
    pub vmas: u32,
    /// Whether any of them is executable.
    pub executable: bool,
}

impl<'a> Referenced<'a> {
    /// An empty summary for a folio of the file with these mappings.
    pub fn new(mappings: &'a FileMappings) -> Self {
        Referenced { mappings, last: None, vmas: 0, executable: false }
    }

    /// Adds the pages of `mask` in `word` whose entries in `layer` were accessed.
    pub fn add(&mut self, layer: Layer, word: u64, mut mask: u64) {
        while mask != 0 {
            let index = PageIndex(word * WORD_PAGES + u64::from(mask.trailing_zeros()));
            let vma = self.mappings.vma(layer, index).expect("an entry lies in a VMA");
            if self.last != Some((layer, vma.pgoff)) {
                self.last = Some((layer, vma.pgoff));
                self.vmas += 1;
                self.executable |= vma.executable;
            }
            mask &= !word_mask(word, index, vma.end());
        }
    }
}

/// Judges a large folio with accessed entries in `young` VMAs, `executable` if any of them is.
///
/// Mirrors `folio_check_references`, 6.12 and 6.18. Test: `tests/reclaim.rs`.
pub fn judge_folio(young: u32, referenced: bool, executable: bool) -> FolioVerdict {
    match young {
        0 => FolioVerdict::Evict,
        1 if !referenced && !executable => FolioVerdict::Keep,
        _ => FolioVerdict::Activate,
    }
}

/// Effect of an access by `read(2)` on a folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessEffect {
    /// It becomes referenced.
    Reference,
    /// It was referenced: it is activated, and loses the referenced flag.
    Activate,
}

/// The second access to an inactive folio activates it.
///
/// Mirrors `folio_mark_accessed`, 6.12 and 6.18. Test: `tests/reclaim.rs`.
pub fn access_effect(referenced: bool, active: bool) -> AccessEffect {
    if referenced && !active { AccessEffect::Activate } else { AccessEffect::Reference }
}

/// Effects of accesses on base pages of one word. The masks are disjoint and cover the accessed
/// pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessEffects {
    /// Become referenced.
    pub reference: u64,
    /// Go to the active list, and are no longer referenced.
    pub activate: u64,
}

/// [`access_effect`] for the base pages of one word.
///
/// Mirrors `folio_mark_accessed`, 6.12 and 6.18. Test: `tests/reclaim.rs`.
pub fn access_effects(pages: u64, referenced: u64, active: u64) -> AccessEffects {
    let activate = pages & referenced & !active;
    AccessEffects { reference: pages & !activate, activate }
}
