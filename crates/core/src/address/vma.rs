//! VMAs.

use crate::units::{PageCount, PageIndex, Vpn};

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
