//! The mapped parts of each file.

use std::ops::Range;

use filemap_core::units::PageIndex;

use super::Job;
use crate::parts::merge_ranges;

/// The mapped parts of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedParts {
    /// The mapped pages, as sorted and disjoint ranges that do not touch.
    pub ranges: Vec<Range<PageIndex>>,
    /// The page after the end of the file.
    pub end: PageIndex,
    /// A mapping consists of ELF segments.
    pub has_segments: bool,
}

impl Job {
    /// The mapped parts of each file, in the order of files.
    pub fn mapped_parts(&self) -> Vec<MappedParts> {
        let ends = (0..self.files.len()).map(|file| PageIndex(self.file_pages(file).0));
        let none = |end| MappedParts { ranges: Vec::new(), end, has_segments: false };
        let mut all: Vec<MappedParts> = ends.map(none).collect();
        for mapping in &self.mappings {
            let MappedParts { ranges, end, has_segments } = &mut all[self.opens[mapping.open].file];
            let parts = mapping.parts().into_iter();
            let inside = parts.map(|(from, pages)| from.min(*end)..(from + pages).min(*end));
            ranges.extend(inside.filter(|range| !range.is_empty()));
            *has_segments |= !mapping.segments.is_empty();
        }
        for of_file in &mut all {
            of_file.ranges = merge_ranges(std::mem::take(&mut of_file.ranges));
        }
        all
    }
}
