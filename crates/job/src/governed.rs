//! Which mappings a governor is for.

use filemap_core::address::vma::Advice;

use crate::parts::Mapping;
use crate::program::{Job, NamedMapping};

/// Bytes of the smallest mapping that a governor is for. A program has many smaller ones, and
/// readahead reads not much more than they have.
const LEAST_GOVERNED_BYTES: u64 = 16 << 20;

impl Mapping {
    /// Why a governor leaves it alone, on pages of `page_size` bytes; `None` where it is for such
    /// mappings.
    pub fn ungoverned(&self, page_size: u64) -> Option<&'static str> {
        match () {
            () if self.exec => Some("it is executable"),
            () if self.private => Some("it is private and can be written to"),
            () if self.effective_split().is_some() => {
                Some("parts of it can be written to or executed")
            }
            () if self.advice != Advice::NORMAL => Some("the program advises it itself"),
            () if self.pages.bytes(page_size) < LEAST_GOVERNED_BYTES => {
                Some("it is smaller than 16 MiB")
            }
            () => None,
        }
    }
}

impl NamedMapping {
    /// [`Mapping::ungoverned`], and of the segments of a program.
    pub fn ungoverned(&self, page_size: u64) -> Option<&'static str> {
        of_segments(!self.segments.is_empty()).or_else(|| self.mapping.ungoverned(page_size))
    }
}

impl Job {
    /// Whether the governor's policy reads ahead in one of its mappings.
    pub fn is_governed(&self) -> bool {
        let page_size = self.page_size();
        self.machine.governor && self.mappings.iter().any(|of| of.ungoverned(page_size).is_none())
    }
}

/// Why a program's segments are left alone.
fn of_segments(are_mapped: bool) -> Option<&'static str> {
    are_mapped.then_some("its segments are mapped before a governor is there")
}
