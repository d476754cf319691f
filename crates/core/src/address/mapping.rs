//! Mappings of a file and the VMAs they consist of.

use super::vma::Vma;
use crate::units::{PageCount, PageIndex};
use crate::word::{WORD_PAGES, word_mask};

/// What `mprotect` makes of every second piece of a split mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The mapping as one VMA, before it was split.
    pub whole: Vma,
    /// How it was split.
    pub split: Option<Split>,
}

impl Mapping {
    /// The mapping of a part of a file, whole or split.
    pub const fn new(whole: Vma, split: Option<Split>) -> Mapping {
        Mapping { whole, split }
    }

    /// The VMA that maps `index`, which lies in the mapping.
    pub fn vma(&self, index: PageIndex) -> Vma {
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

    /// Whether any of its VMAs is executable.
    pub fn has_code(&self) -> bool {
        let by_split =
            |split: Split| split.prot == SplitProt::Exec && split.pages < self.whole.pages;
        self.whole.executable || self.split.is_some_and(by_split)
    }

    /// Whether reclaim believes the accessed bits of its entries.
    pub fn has_recency(&self) -> bool {
        self.whole.advice.has_recency()
    }

    /// The pages of `word` that an executable VMA maps.
    pub fn executable_mask(&self, word: u64) -> u64 {
        let first = PageIndex(word * WORD_PAGES).max(self.whole.pgoff);
        let end = PageIndex((word + 1) * WORD_PAGES).min(self.whole.end());
        if self.whole.executable {
            return word_mask(word, first, end);
        }
        if self.split.is_none_or(|split| split.prot != SplitProt::Exec) {
            return 0;
        }
        let mut mask = 0;
        let mut index = first;
        while index < end {
            let vma = self.vma(index);
            if vma.executable {
                mask |= word_mask(word, index, vma.end());
            }
            index = vma.end();
        }
        mask
    }
}
