//! The VMAs of a mapping split by advice or protection of a range.

use super::advice::{Advice, AdviceFlag};
use super::protection::Protection;
use crate::units::{PageCount, PageIndex};

/// One VMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmaPiece {
    /// First file page.
    pub first: PageIndex,
    /// Length.
    pub pages: PageCount,
    /// Advice.
    pub advice: Advice,
    /// Index of the original VMA of the mapping that this is a part of.
    pub number: u64,
    /// Protection.
    pub protection: Protection,
    /// Identity of its `anon_vma`, from 1; 0 if it has none.
    pub anon_vma: u32,
}

impl VmaPiece {
    /// The page after its last.
    pub fn end(&self) -> PageIndex {
        self.first + self.pages
    }

    /// Its part within `from..end`, if any.
    fn part(&self, from: PageIndex, end: PageIndex) -> Option<VmaPiece> {
        let (from, end) = (from.max(self.first), end.min(self.end()));
        (from < end).then(|| VmaPiece { first: from, pages: end - from, ..*self })
    }

    /// Whether the kernel merges this VMA with `next`: same protection and advice, and compatible
    /// `anon_vma`s.
    fn joins(&self, next: &VmaPiece) -> bool {
        let apart = self.anon_vma != next.anon_vma && self.anon_vma > 0 && next.anon_vma > 0;
        let alike = self.number == next.number && self.protection == next.protection;
        alike && self.advice == next.advice && !apart
    }
}

/// A change of a VMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmaChange {
    /// Advice (`madvise(2)`).
    Advice(AdviceFlag),
    /// Protection (`mprotect(2)`).
    Protection(Protection),
}

impl VmaChange {
    /// Applies the change to `piece`.
    fn apply_to(self, piece: VmaPiece) -> VmaPiece {
        match self {
            VmaChange::Advice(flag) => VmaPiece { advice: piece.advice.and(flag), ..piece },
            VmaChange::Protection(protection) => VmaPiece { protection, ..piece },
        }
    }
}

/// All VMAs of a mapping, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmaPieces(Vec<VmaPiece>);

impl VmaPieces {
    /// A mapping that was never split.
    pub const NONE: VmaPieces = VmaPieces(Vec::new());

    /// Creates the list from adjacent VMAs.
    pub fn new(pieces: Vec<VmaPiece>) -> VmaPieces {
        VmaPieces(pieces)
    }

    /// Whether the mapping was never split.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All VMAs.
    pub fn all(&self) -> &[VmaPiece] {
        &self.0
    }

    /// The VMA that maps `index`, which has to be in the mapping.
    pub fn piece_at(&self, index: PageIndex) -> &VmaPiece {
        &self.0[self.position(index)]
    }

    fn position(&self, index: PageIndex) -> usize {
        self.0.partition_point(|piece| piece.first <= index) - 1
    }

    /// Applies `change` to the pages `from..end`. Affected VMAs are split at the ends of the range,
    /// and merged with their neighbours where possible; others stay as they are.
    ///
    /// Mirrors `madvise_update_vma`, `mprotect_fixup` and `vma_modify`, 6.12 and 6.18.
    /// Test: `tests/advice.rs`, `tests/protection.rs`.
    pub fn change(&mut self, from: PageIndex, end: PageIndex, change: VmaChange) {
        let mut pieces: Vec<VmaPiece> = Vec::with_capacity(self.0.len() + 2);
        // Only VMAs at the ends of a change can be merged.
        let mut last_changed = false;
        for piece in &self.0 {
            let before = piece.part(piece.first, from);
            let within = piece.part(from, end);
            let after = piece.part(end, piece.end());
            let changes = within.is_some_and(|part| change.apply_to(part) != part);
            let parts = if changes {
                [
                    before.map(|part| (part, false)),
                    within.map(|part| (change.apply_to(part), true)),
                    after.map(|part| (part, false)),
                ]
            } else {
                [Some((*piece, false)), None, None]
            };
            for (part, changed) in parts.into_iter().flatten() {
                match pieces.last_mut() {
                    Some(last) if (changed || last_changed) && last.joins(&part) => {
                        last.pages += part.pages;
                        last.anon_vma = last.anon_vma.max(part.anon_vma);
                    }
                    _ => pieces.push(part),
                }
                last_changed = changed;
            }
        }
        self.0 = pieces;
    }

    /// Records a private copy in the VMA that maps `index`. A VMA without an `anon_vma` shares that
    /// of a neighbour that differs only in protection.
    ///
    /// Mirrors `find_mergeable_anon_vma`, 6.12 and 6.18. Test: `tests/advice.rs`.
    pub fn record_copy(&mut self, index: PageIndex) {
        let at = self.position(index);
        if self.0[at].anon_vma > 0 {
            return;
        }
        let advice = self.0[at].advice;
        let next = self.0.get(at + 1);
        let previous = at.checked_sub(1).map(|previous| &self.0[previous]);
        let of_neighbour = [next, previous].into_iter().flatten();
        let shared = of_neighbour
            .filter(|other| other.protection != Protection::Unmapped)
            .filter(|other| other.advice == advice && other.anon_vma > 0)
            .map(|other| other.anon_vma)
            .next();
        let highest = self.0.iter().map(|piece| piece.anon_vma).max().unwrap_or(0);
        self.0[at].anon_vma = shared.unwrap_or(highest + 1);
    }
}
