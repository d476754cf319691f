//! Mappings of a file and the VMAs they consist of.

use super::advice::{Advice, AdviceFlag};
pub use super::pieces::VmaChange;
use super::pieces::{VmaPiece, VmaPieces};
use super::protection::Protection;
use super::vma::Vma;
use crate::units::{PageCount, PageIndex};
use crate::word::{WORD_PAGES, word_mask};

/// Protection of every second piece of a split mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(serde::Serialize, serde::Deserialize)]
pub enum SplitProt {
    /// Writable: still not executable.
    Write,
    /// Executable.
    Exec,
}

impl SplitProt {
    /// Every protection.
    pub const ALL: [SplitProt; 2] = [SplitProt::Write, SplitProt::Exec];

    /// The name on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            SplitProt::Write => "write",
            SplitProt::Exec => "exec",
        }
    }
}

/// A split of a mapping into VMAs of equal length; the last may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Split {
    /// Pages of each VMA: at least 1.
    pub pages: PageCount,
    /// The protection of the second, fourth, ... one.
    pub prot: SplitProt,
}

impl Split {
    /// Whether the split makes the VMA of that number, from 0, executable.
    pub fn makes_executable(&self, number: u64) -> bool {
        self.prot == SplitProt::Exec && number % 2 == 1
    }
}

/// A contiguous mapping of part of a file: one VMA, or a sequence of VMAs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMapping {
    /// The mapping as one VMA, before it was split. Its advice and protection apply to all VMAs
    /// unless [`FileMapping::change`] has split them.
    pub whole: Vma,
    /// How it was split.
    pub split: Option<Split>,
    /// The open file was advised NOREUSE.
    pub no_reuse: bool,
    /// Index of its process.
    pub process: u32,
    /// Whether accesses through RANDOM mappings count
    /// ([`crate::rules::Rules::random_accesses_count`]).
    pub random_counts: bool,
    /// Protection of `whole`.
    protection: Protection,
    /// It was mapped executable.
    mapped_executable: bool,
    /// Its VMAs, once a range was changed.
    pieces: VmaPieces,
    /// Whether a page was copied before that.
    has_copies: bool,
}

impl FileMapping {
    /// Maps part of a file, whole or split.
    pub const fn new(whole: Vma, split: Option<Split>) -> FileMapping {
        FileMapping {
            whole,
            split,
            no_reuse: false,
            process: 0,
            random_counts: false,
            protection: Protection::AsMapped,
            mapped_executable: whole.executable,
            pieces: VmaPieces::NONE,
            has_copies: false,
        }
    }

    /// The VMA that maps `index`, which has to be in the mapping.
    #[inline]
    pub fn vma(&self, index: PageIndex) -> Vma {
        if !self.pieces.is_empty() {
            return self.piece_vma(self.pieces.piece_at(index));
        }
        let Some(split) = self.split else {
            return self.whole;
        };
        let number = (index - self.whole.pgoff).0 / split.pages.0;
        let before = PageCount(number * split.pages.0);
        Vma {
            start: self.whole.start + before,
            pgoff: self.whole.pgoff + before,
            pages: split.pages.min(self.whole.pages - before),
            executable: self.whole.executable || split.makes_executable(number),
            ..self.whole
        }
    }

    fn piece_vma(&self, piece: &VmaPiece) -> Vma {
        let by_split = self.split.is_some_and(|split| split.makes_executable(piece.number));
        Vma {
            start: self.whole.vpn(piece.first),
            pgoff: piece.first,
            pages: piece.pages,
            advice: piece.advice,
            executable: self.is_executable(piece.protection) || by_split,
        }
    }

    fn is_executable(&self, protection: Protection) -> bool {
        self.mapped_executable || protection == Protection::Exec
    }

    /// Its VMAs that overlap the pages `from..end`, each with the overlap.
    pub fn vmas(
        &self,
        from: PageIndex,
        end: PageIndex,
    ) -> impl Iterator<Item = (Vma, PageIndex, PageIndex)> + '_ {
        let mut next = from.max(self.whole.pgoff);
        let end = end.min(self.whole.end());
        std::iter::from_fn(move || {
            let vma = (next < end).then(|| self.vma(next))?;
            let first = next;
            next = vma.end().min(end);
            Some((vma, first, next))
        })
    }

    /// The VMAs altered by a change of the pages `from..end`: changed, split or merged. The writer
    /// locks exactly these.
    ///
    /// Mirrors `mprotect_fixup`, `madvise_update_vma` and `vma_modify`, 6.12 and 6.18.
    /// Test: `tests/protection.rs`.
    pub fn altered(&self, from: PageIndex, end: PageIndex, change: VmaChange) -> Vec<Vma> {
        let before = if self.pieces.is_empty() { self.to_pieces() } else { self.pieces.clone() };
        let mut after = before.clone();
        after.change(from, end, change);
        let is_altered = |piece: &&VmaPiece| after.piece_at(piece.first) != *piece;
        before.all().iter().filter(is_altered).map(|piece| self.piece_vma(piece)).collect()
    }

    /// Changes the advice or protection of the pages `from..end`.
    pub fn change(&mut self, from: PageIndex, end: PageIndex, change: VmaChange) {
        let is_whole = from <= self.whole.pgoff && self.whole.end() <= end;
        if self.pieces.is_empty() && is_whole {
            let (mut advice, mut protection) = (self.whole.advice, self.protection);
            match change {
                VmaChange::Advice(flag) => advice = advice.and(flag),
                VmaChange::Protection(new) => protection = new,
            }
            return self.set_whole(advice, protection);
        }
        if self.pieces.is_empty() {
            self.pieces = self.to_pieces();
        }
        self.pieces.change(from, end, change);
        let (first, rest) = self.pieces.all().split_first().expect("a mapping has a VMA");
        if rest.is_empty() {
            let (advice, protection) = (first.advice, first.protection);
            self.has_copies = first.anon_vma > 0;
            self.pieces = VmaPieces::NONE;
            self.set_whole(advice, protection);
        }
    }

    fn set_whole(&mut self, advice: Advice, protection: Protection) {
        self.protection = protection;
        self.whole.advice = advice;
        self.whole.executable = self.is_executable(protection);
    }

    /// For the unmapped pages `from..end`: the end of the mapped part before them, and the start of
    /// the mapped part after them.
    pub fn mapped_neighbors(
        &self,
        from: PageIndex,
        end: PageIndex,
    ) -> (Option<PageIndex>, Option<PageIndex>) {
        let mapped = |piece: &&VmaPiece| piece.protection != Protection::Unmapped;
        let pieces = self.pieces.all();
        let before = pieces.iter().rfind(|piece| piece.end() <= from && mapped(piece));
        let after = pieces.iter().find(|piece| piece.first >= end && mapped(piece));
        (before.map(VmaPiece::end), after.map(|piece| piece.first))
    }

    /// The mapped part around `index`, up to unmapped pages: its first page, and the page after its
    /// last.
    pub fn mapped_part(&self, index: PageIndex) -> (PageIndex, PageIndex) {
        let gone = |piece: &&VmaPiece| piece.protection == Protection::Unmapped;
        let pieces = self.pieces.all();
        let before = pieces.iter().rfind(|piece| piece.end() <= index && gone(piece));
        let after = pieces.iter().find(|piece| piece.first > index && gone(piece));
        let first = before.map_or(self.whole.pgoff, VmaPiece::end);
        (first, after.map_or(self.whole.end(), |piece| piece.first))
    }

    /// Gives advice for its pages `from..end`.
    pub fn advise(&mut self, from: PageIndex, end: PageIndex, flag: AdviceFlag) {
        self.change(from, end, VmaChange::Advice(flag));
    }

    /// Its VMAs before any range was changed.
    fn to_pieces(&self) -> VmaPieces {
        let length = self.split.map_or(self.whole.pages, |split| split.pages).0;
        let vmas = self.vmas(self.whole.pgoff, self.whole.end());
        let pieces = vmas.map(|(vma, first, _)| VmaPiece {
            first,
            pages: vma.pages,
            advice: vma.advice,
            number: (first - self.whole.pgoff).0 / length,
            protection: self.protection,
            anon_vma: u32::from(self.has_copies),
        });
        VmaPieces::new(pieces.collect())
    }

    /// Records a private copy of page `index`.
    #[inline]
    pub fn record_copy(&mut self, index: PageIndex) {
        if self.pieces.is_empty() { self.has_copies = true } else { self.pieces.record_copy(index) }
    }

    /// Whether any of its VMAs is executable.
    pub fn has_code(&self) -> bool {
        let by_split =
            |split: Split| split.prot == SplitProt::Exec && split.pages < self.whole.pages;
        let by_change = |piece: &VmaPiece| self.is_executable(piece.protection);
        if self.pieces.is_empty() {
            self.whole.executable || self.split.is_some_and(by_split)
        } else {
            self.split.is_some_and(by_split) || self.pieces.all().iter().any(by_change)
        }
    }

    /// Whether reclaim honours the accessed bits of entries in `vma`, one of its VMAs.
    ///
    /// Mirrors `vma_has_recency`, 6.12 and 6.18. Test: `tests/advice.rs`.
    pub fn vma_has_recency(&self, vma: &Vma) -> bool {
        self.has_recency_with(vma.advice) && !self.no_reuse
    }

    fn has_recency_with(&self, advice: Advice) -> bool {
        advice.has_recency() || self.random_counts && advice.is_random()
    }

    /// Whether reclaim honours the accessed bits of its entries; `None` if that differs between
    /// VMAs.
    pub fn has_recency(&self) -> Option<bool> {
        if self.no_reuse {
            return Some(false);
        }
        let mut pieces = self.pieces.all().iter().map(|piece| self.has_recency_with(piece.advice));
        let Some(first) = pieces.next() else {
            return Some(self.has_recency_with(self.whole.advice));
        };
        pieces.all(|other| other == first).then_some(first)
    }

    /// The pages of `word` whose accessed bits reclaim honours.
    pub fn recency_mask(&self, word: u64) -> u64 {
        let (first, end) = (PageIndex(word * WORD_PAGES), PageIndex((word + 1) * WORD_PAGES));
        let recency = self.vmas(first, end).filter(|(vma, ..)| self.vma_has_recency(vma));
        recency.fold(0, |mask, (_, from, end)| mask | word_mask(word, from, end))
    }

    /// The pages of `word` that an executable VMA maps.
    pub fn executable_mask(&self, word: u64) -> u64 {
        let first = PageIndex(word * WORD_PAGES).max(self.whole.pgoff);
        let end = PageIndex((word + 1) * WORD_PAGES).min(self.whole.end());
        if self.pieces.is_empty() {
            if self.whole.executable {
                return word_mask(word, first, end);
            }
            if self.split.is_none_or(|split| split.prot != SplitProt::Exec) {
                return 0;
            }
        }
        let executable = self.vmas(first, end).filter(|(vma, ..)| vma.executable);
        executable.fold(0, |mask, (_, from, end)| mask | word_mask(word, from, end))
    }
}
