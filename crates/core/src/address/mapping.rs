//! Mappings of a file and the VMAs they consist of.

use super::advice::{Advice, AdviceFlag};
pub use super::pieces::Change;
use super::pieces::{Piece, Pieces};
use super::protection::Protection;
use super::vma::Vma;
use crate::units::{PageCount, PageIndex};
use crate::word::{WORD_PAGES, word_mask};

/// What `mprotect` makes of every second piece of a split mapping.
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

/// A part of a file that is mapped in one piece: one VMA, or a row of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The mapping as one VMA, before it was split. Its advice and its protection are those of all
    /// VMAs where [`Mapping::change`] has not cut them.
    pub whole: Vma,
    /// How it was split.
    pub split: Option<Split>,
    /// The open file was advised NOREUSE.
    pub no_reuse: bool,
    /// The process that it belongs to, by its number.
    pub process: u32,
    /// The kernel lets RANDOM accesses count ([`crate::rules::Rules::random_accesses_count`]).
    pub random_counts: bool,
    /// What it may be used for, as that of `whole`.
    protection: Protection,
    /// It was mapped executable.
    mapped_executable: bool,
    /// Its VMAs, where a range was changed.
    pieces: Pieces,
    /// A page was copied before that.
    has_copies: bool,
}

impl Mapping {
    /// The mapping of a part of a file, whole or split.
    pub const fn new(whole: Vma, split: Option<Split>) -> Mapping {
        Mapping {
            whole,
            split,
            no_reuse: false,
            process: 0,
            random_counts: false,
            protection: Protection::AsMapped,
            mapped_executable: whole.executable,
            pieces: Pieces::NONE,
            has_copies: false,
        }
    }

    /// The VMA that maps `index`, which lies in the mapping.
    #[inline]
    pub fn vma(&self, index: PageIndex) -> Vma {
        if !self.pieces.is_empty() {
            return self.of_piece(self.pieces.of(index));
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

    fn of_piece(&self, piece: &Piece) -> Vma {
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

    /// Its VMAs for the pages `from..end`, each with the part of these that it maps.
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

    /// The VMAs that a change of its pages `from..end` alters: those that it advises or protects
    /// otherwise, cuts, or joins. A writer takes the locks of these, and of no others.
    ///
    /// Mirrors `mprotect_fixup`, `madvise_update_vma` and `vma_modify`, 6.12 and 6.18.
    /// Test: `tests/protection.rs`.
    pub fn altered(&self, from: PageIndex, end: PageIndex, change: Change) -> Vec<Vma> {
        let before = if self.pieces.is_empty() { self.cut() } else { self.pieces.clone() };
        let mut after = before.clone();
        after.change(from, end, change);
        let is_altered = |piece: &&Piece| after.of(piece.first) != *piece;
        before.all().iter().filter(is_altered).map(|piece| self.of_piece(piece)).collect()
    }

    /// Changes its pages `from..end`.
    pub fn change(&mut self, from: PageIndex, end: PageIndex, change: Change) {
        let is_whole = from <= self.whole.pgoff && self.whole.end() <= end;
        if self.pieces.is_empty() && is_whole {
            let (mut advice, mut protection) = (self.whole.advice, self.protection);
            match change {
                Change::Advice(flag) => advice = advice.and(flag),
                Change::Protection(new) => protection = new,
            }
            return self.all_are(advice, protection);
        }
        if self.pieces.is_empty() {
            self.pieces = self.cut();
        }
        self.pieces.change(from, end, change);
        let (first, rest) = self.pieces.all().split_first().expect("a mapping has a VMA");
        if rest.is_empty() {
            let (advice, protection) = (first.advice, first.protection);
            self.has_copies = first.anonymous > 0;
            self.pieces = Pieces::NONE;
            self.all_are(advice, protection);
        }
    }

    fn all_are(&mut self, advice: Advice, protection: Protection) {
        self.protection = protection;
        self.whole.advice = advice;
        self.whole.executable = self.is_executable(protection);
    }

    /// The pages around `from..end`, which are not mapped any more: where the part before them that
    /// still is mapped ends, and where the one after them begins.
    pub fn around(
        &self,
        from: PageIndex,
        end: PageIndex,
    ) -> (Option<PageIndex>, Option<PageIndex>) {
        let mapped = |piece: &&Piece| piece.protection != Protection::Unmapped;
        let pieces = self.pieces.all();
        let before = pieces.iter().rfind(|piece| piece.end() <= from && mapped(piece));
        let behind = pieces.iter().find(|piece| piece.first >= end && mapped(piece));
        (before.map(Piece::end), behind.map(|piece| piece.first))
    }

    /// The part of it that `index` lies in, which is mapped, up to parts that are not any more: its
    /// first page, and the page after its last.
    pub fn mapped_part(&self, index: PageIndex) -> (PageIndex, PageIndex) {
        let gone = |piece: &&Piece| piece.protection == Protection::Unmapped;
        let pieces = self.pieces.all();
        let before = pieces.iter().rfind(|piece| piece.end() <= index && gone(piece));
        let behind = pieces.iter().find(|piece| piece.first > index && gone(piece));
        let first = before.map_or(self.whole.pgoff, Piece::end);
        (first, behind.map_or(self.whole.end(), |piece| piece.first))
    }

    /// Gives advice for its pages `from..end`.
    pub fn advise(&mut self, from: PageIndex, end: PageIndex, flag: AdviceFlag) {
        self.change(from, end, Change::Advice(flag));
    }

    /// Its VMAs, as they are where no range was changed.
    fn cut(&self) -> Pieces {
        let length = self.split.map_or(self.whole.pages, |split| split.pages).0;
        let vmas = self.vmas(self.whole.pgoff, self.whole.end());
        let pieces = vmas.map(|(vma, first, _)| Piece {
            first,
            pages: vma.pages,
            advice: vma.advice,
            number: (first - self.whole.pgoff).0 / length,
            protection: self.protection,
            anonymous: u32::from(self.has_copies),
        });
        Pieces::new(pieces.collect())
    }

    /// A write copied the page `index`.
    #[inline]
    pub fn copied(&mut self, index: PageIndex) {
        if self.pieces.is_empty() { self.has_copies = true } else { self.pieces.copied(index) }
    }

    /// Whether any of its VMAs is executable.
    pub fn has_code(&self) -> bool {
        let by_split =
            |split: Split| split.prot == SplitProt::Exec && split.pages < self.whole.pages;
        let by_change = |piece: &Piece| self.is_executable(piece.protection);
        if self.pieces.is_empty() {
            self.whole.executable || self.split.is_some_and(by_split)
        } else {
            self.split.is_some_and(by_split) || self.pieces.all().iter().any(by_change)
        }
    }

    /// Whether reclaim believes the accessed bits of the entries in `vma`, one of its VMAs.
    ///
    /// Mirrors `vma_has_recency`, 6.12 and 6.18. Test: `tests/advice.rs`.
    pub fn believes(&self, vma: &Vma) -> bool {
        self.has_recency_with(vma.advice) && !self.no_reuse
    }

    fn has_recency_with(&self, advice: Advice) -> bool {
        advice.has_recency() || self.random_counts && advice.is_random()
    }

    /// Whether reclaim believes the accessed bits of its entries; `None` where that depends on the
    /// VMA.
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

    /// The pages of `word` whose accessed bits reclaim believes.
    pub fn believed_mask(&self, word: u64) -> u64 {
        let (first, end) = (PageIndex(word * WORD_PAGES), PageIndex((word + 1) * WORD_PAGES));
        let believed = self.vmas(first, end).filter(|(vma, ..)| self.believes(vma));
        believed.fold(0, |mask, (_, from, end)| mask | word_mask(word, from, end))
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
