//! Mappings that the governor is responsible for.

use filemap_core::address::vma::Advice;

use crate::parts::Mapping;
use crate::program::{Job, NamedMapping};

/// Minimum size of a governed mapping, in bytes. Programs have many smaller ones, where readahead
/// reads little in excess.
const MIN_GOVERNED_BYTES: u64 = 16 << 20;

impl Mapping {
    /// Why the governor ignores the mapping with pages of `page_size` bytes; `None` if it is
    /// governed.
    pub fn ungoverned(&self, page_size: u64) -> Option<&'static str> {
        match () {
            () if self.exec => Some("it is executable"),
            () if self.private => Some("it is private and can be written to"),
            () if self.effective_split().is_some() => {
                Some("parts of it can be written to or executed")
            }
            // Of the program's own advice, the governor replaces only MADV_RANDOM: it reads ahead
            // where that turns out to read page by page.
            () if ![Advice::NORMAL, Advice::RANDOM].contains(&self.advice) => {
                Some("the program advises it itself")
            }
            () if self.pages.bytes(page_size) < MIN_GOVERNED_BYTES => {
                Some("it is smaller than 16 MiB")
            }
            () => None,
        }
    }
}

impl NamedMapping {
    /// As [`Mapping::ungoverned`]; also covers ELF segments.
    pub fn ungoverned(&self, page_size: u64) -> Option<&'static str> {
        ungoverned_segments(!self.segments.is_empty())
            .or_else(|| self.mapping.ungoverned(page_size))
    }
}

impl Job {
    /// Whether the governor's policy replaces readahead in any of its mappings.
    pub fn is_governed(&self) -> bool {
        let page_size = self.page_size();
        self.machine.governor
            && self.mappings.iter().any(|mapping| mapping.ungoverned(page_size).is_none())
    }
}

/// Why ELF segments are ignored, if `are_mapped`.
fn ungoverned_segments(are_mapped: bool) -> Option<&'static str> {
    are_mapped.then_some("its segments are mapped before the governor starts")
}
