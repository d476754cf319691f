//! What becomes of folios that reclaim looks at.

use crate::address::entries::Layer;
use crate::address::reverse_map::FileMappings;
use crate::units::PageIndex;
use crate::word::{WORD_PAGES, word_mask};

/// What becomes of the base pages of one word from the inactive list's tail. The three masks are
/// disjoint and cover what was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdicts {
    /// Leave the lists.
    pub evict: u64,
    /// Go round the inactive list once more, now referenced.
    pub keep: u64,
    /// Go to the active list.
    pub activate: u64,
}

/// Judges base pages: `young` have an accessed entry, `referenced` were seen young before or have
/// accessed entries in several VMAs, `executable` lie in an executable VMA.
///
/// Mirrors `folio_check_references`, 6.12 and 6.18. Test: `tests/reclaim.rs`.
pub fn judge_pages(pages: u64, young: u64, referenced: u64, executable: u64) -> Verdicts {
    let young = young & pages;
    let activate = young & (referenced | executable);
    Verdicts { evict: pages & !young, keep: young & !activate, activate }
}

/// What becomes of one folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Leaves the lists.
    Evict,
    /// Goes round the inactive list once more, now referenced.
    Keep,
    /// Goes to the active list.
    Activate,
}

/// What accessed entries say of one folio: gathered layer by layer, each page by page in
/// ascending order.
///
/// Mirrors `folio_referenced`, 6.12 and 6.18: however many entries of one VMA were accessed, they
/// count once. (Seen on 6.18: 64 MiB of large folios, each mapped by many accessed entries of one
/// VMA, went round the inactive list and none became active.) Test: `tests/reclaim.rs`.
#[derive(Debug)]
pub struct Referenced<'a> {
    mappings: &'a FileMappings,
    /// The last VMA that had an accessed entry, by its layer and first page.
    last: Option<(Layer, PageIndex)>,
    /// VMAs with an accessed entry.
    pub vmas: u32,
    /// Whether any of them is executable.
    pub executable: bool,
}

impl<'a> Referenced<'a> {
    /// Nothing gathered yet of a folio of the file that these map.
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

/// Judges a large folio: `young` VMAs have accessed entries for it, an `executable` one among
/// them or not.
///
/// Mirrors `folio_check_references`, 6.12 and 6.18. Test: `tests/reclaim.rs`.
pub fn judge_folio(young: u32, referenced: bool, executable: bool) -> Verdict {
    match young {
        0 => Verdict::Evict,
        1 if !referenced && !executable => Verdict::Keep,
        _ => Verdict::Activate,
    }
}

/// What a use by `read(2)` does to a folio on the inactive list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    /// It becomes referenced.
    Reference,
    /// It was referenced: it moves to the active list's head and is no longer referenced.
    Activate,
}

/// The second use of an inactive folio makes it active.
///
/// Mirrors `folio_mark_accessed`, 6.12 and 6.18. Test: `tests/reclaim.rs`.
pub fn used(referenced: bool, active: bool) -> Used {
    if referenced && !active { Used::Activate } else { Used::Reference }
}

/// What uses do to base pages of one word. The two masks are disjoint and cover what was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedPages {
    /// Become referenced.
    pub reference: u64,
    /// Go to the active list, and are no longer referenced.
    pub activate: u64,
}

/// [`used`] for the base pages of one word.
///
/// Mirrors `folio_mark_accessed`, 6.12 and 6.18. Test: `tests/reclaim.rs`.
pub fn used_pages(pages: u64, referenced: u64, active: u64) -> UsedPages {
    let activate = pages & referenced & !active;
    UsedPages { reference: pages & !activate, activate }
}
