//! The VMAs of a mapping that advice or protection for a range has cut and joined.

use super::advice::{Advice, AdviceFlag};
use super::protection::Protection;
use crate::units::{PageCount, PageIndex};

/// One VMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first file page that it maps.
    pub first: PageIndex,
    /// Length.
    pub pages: PageCount,
    /// Advice given for it.
    pub advice: Advice,
    /// Which VMA of the mapping, as it was split when it was made, this is a part of.
    pub number: u64,
    /// What it may be used for.
    pub protection: Protection,
    /// What private copies made in it belong to (`anon_vma`), from 1; 0 where there never were any.
    pub anonymous: u32,
}

impl Piece {
    /// The page after its last.
    pub fn end(&self) -> PageIndex {
        self.first + self.pages
    }

    /// The part of it from `from` to before `end`, if there is any.
    fn part(&self, from: PageIndex, end: PageIndex) -> Option<Piece> {
        let (from, end) = (from.max(self.first), end.min(self.end()));
        (from < end).then(|| Piece { first: from, pages: end - from, ..*self })
    }

    /// Whether the kernel makes one VMA of this and `next`: the same protection and advice, and
    /// copies that belong to one and the same, where both have any.
    fn joins(&self, next: &Piece) -> bool {
        let apart = self.anonymous != next.anonymous && self.anonymous > 0 && next.anonymous > 0;
        let alike = self.number == next.number && self.protection == next.protection;
        alike && self.advice == next.advice && !apart
    }
}

/// What changes of a VMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The program advised it (`madvise(2)`).
    Advice(AdviceFlag),
    /// The program protected it (`mprotect(2)`).
    Protection(Protection),
}

impl Change {
    /// `piece` with it.
    fn of(self, piece: Piece) -> Piece {
        match self {
            Change::Advice(flag) => Piece { advice: piece.advice.and(flag), ..piece },
            Change::Protection(protection) => Piece { protection, ..piece },
        }
    }
}

/// All VMAs of a mapping, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces(Vec<Piece>);

impl Pieces {
    /// Those of a mapping that was never cut.
    pub const NONE: Pieces = Pieces(Vec::new());

    /// These, which lie one after the other.
    pub fn new(pieces: Vec<Piece>) -> Pieces {
        Pieces(pieces)
    }

    /// Whether the mapping was never cut.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn all(&self) -> &[Piece] {
        &self.0
    }

    /// The one that maps `index`, which lies in the mapping.
    pub fn of(&self, index: PageIndex) -> &Piece {
        &self.0[self.position(index)]
    }

    fn position(&self, index: PageIndex) -> usize {
        self.0.partition_point(|piece| piece.first <= index) - 1
    }

    /// Makes `change` for the pages `from..end`. VMAs that it changes are cut at the ends of that,
    /// and each is joined with its neighbours where they are alike then; others stay as they are.
    ///
    /// Mirrors `madvise_update_vma`, `mprotect_fixup` and `vma_modify`, 6.12 and 6.18.
    /// Test: `tests/advice.rs`, `tests/protection.rs`.
    pub fn change(&mut self, from: PageIndex, end: PageIndex, change: Change) {
        let mut pieces: Vec<Piece> = Vec::with_capacity(self.0.len() + 2);
        // Whether the last piece was changed: only ends of those can be joined.
        let mut last_changed = false;
        for piece in &self.0 {
            let before = piece.part(piece.first, from);
            let within = piece.part(from, end);
            let behind = piece.part(end, piece.end());
            let changes = within.is_some_and(|part| change.of(part) != part);
            let parts = if changes {
                [
                    before.map(|part| (part, false)),
                    within.map(|part| (change.of(part), true)),
                    behind.map(|part| (part, false)),
                ]
            } else {
                [Some((*piece, false)), None, None]
            };
            for (part, changed) in parts.into_iter().flatten() {
                match pieces.last_mut() {
                    Some(last) if (changed || last_changed) && last.joins(&part) => {
                        last.pages += part.pages;
                        last.anonymous = last.anonymous.max(part.anonymous);
                    }
                    _ => pieces.push(part),
                }
                last_changed = changed;
            }
        }
        self.0 = pieces;
    }

    /// A page of the VMA that maps `index` is copied by a write. The first copy in a VMA belongs to
    /// what those of a neighbour belong to, where that differs in nothing but protection.
    ///
    /// Mirrors `find_mergeable_anon_vma`, 6.12 and 6.18. Test: `tests/advice.rs`.
    pub fn copied(&mut self, index: PageIndex) {
        let at = self.position(index);
        if self.0[at].anonymous > 0 {
            return;
        }
        let advice = self.0[at].advice;
        let next = self.0.get(at + 1);
        let previous = at.checked_sub(1).map(|previous| &self.0[previous]);
        let of_neighbour = [next, previous].into_iter().flatten();
        let shared = of_neighbour
            .filter(|other| other.protection != Protection::Unmapped)
            .filter(|other| other.advice == advice && other.anonymous > 0)
            .map(|other| other.anonymous)
            .next();
        let highest = self.0.iter().map(|piece| piece.anonymous).max().unwrap_or(0);
        self.0[at].anonymous = shared.unwrap_or(highest + 1);
    }
}
