//! Mappings of a file and the VMAs they consist of.

use crate::segments::{Layer, Segments};
use crate::units::{PageCount, PageIndex, Vpn};
use crate::word::{WORD_PAGES, word_mask};

/// What the program said about its accesses (`madvise`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Advice {
    /// MADV_NORMAL.
    #[default]
    Normal,
    /// MADV_RANDOM.
    Random,
    /// MADV_SEQUENTIAL.
    Sequential,
    /// MADV_HUGEPAGE.
    HugePage,
}

impl Advice {
    /// Every advice.
    pub const ALL: [Advice; 4] =
        [Advice::Normal, Advice::Random, Advice::Sequential, Advice::HugePage];

    /// The name on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Advice::Normal => "normal",
            Advice::Random => "random",
            Advice::Sequential => "sequential",
            Advice::HugePage => "hugepage",
        }
    }

    /// Whether reclaim believes the accessed bits of such a mapping (`vma_has_recency`).
    pub const fn has_recency(self) -> bool {
        !matches!(self, Advice::Random | Advice::Sequential)
    }
}

/// One VMA: consecutive virtual pages that map consecutive pages of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vma {
    /// First virtual page.
    pub start: Vpn,
    /// The file page that it maps.
    pub pgoff: PageIndex,
    /// Length.
    pub pages: PageCount,
    /// Advice given for it.
    pub advice: Advice,
    /// Mapped with PROT_EXEC.
    pub executable: bool,
}

impl Vma {
    /// The file page behind the last one mapped.
    pub fn end(&self) -> PageIndex {
        self.pgoff + self.pages
    }

    /// The virtual page that maps `index`.
    pub fn vpn(&self, index: PageIndex) -> Vpn {
        self.start + (index - self.pgoff)
    }

    /// The file page that `vpn` maps.
    pub fn index(&self, vpn: Vpn) -> PageIndex {
        self.pgoff + (vpn - self.start)
    }
}

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

/// What a program maps of a file: a part of it as one VMA or a row of them, or segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The mapping as one VMA, before it was split. Of segments its advice counts only.
    pub whole: Vma,
    /// How it was split.
    pub split: Option<Split>,
    /// The segments that are mapped instead.
    pub segments: Option<Segments>,
}

impl Mapping {
    /// The mapping of a part of a file, whole or split.
    pub const fn new(whole: Vma, split: Option<Split>) -> Mapping {
        Mapping { whole, split, segments: None }
    }

    /// The VMA of `layer` that maps `index`, which is mapped there.
    pub fn vma_in(&self, layer: Layer, index: PageIndex) -> Vma {
        match &self.segments {
            Some(segments) => segments.vma(layer, index).expect("the page is mapped"),
            None => self.vma(index),
        }
    }

    /// The VMA that maps `index`, which lies in the mapping; not of segments.
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

    /// Whether reclaim believes the accessed bits of its entries.
    pub fn has_recency(&self) -> bool {
        self.whole.advice.has_recency()
    }

    /// The pages of `word` that an executable VMA of `layer` maps.
    pub fn executable_mask_in(&self, layer: Layer, word: u64) -> u64 {
        match &self.segments {
            Some(segments) => segments.executable_mask(layer, word),
            None => self.executable_mask(word),
        }
    }

    /// The pages of `word` that an executable VMA maps; not of segments.
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
