//! VMAs.

pub use super::advice::{Advice, AdviceFlag, HugeHint, ReadHint};
use crate::units::{PageCount, PageIndex, Vpn};

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
    /// The file page after the last one mapped.
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
