//! What a program maps of each of its files.

use std::ops::Range;

use filemap_core::units::PageIndex;

use super::Job;
use crate::parts::merged;

/// What is mapped of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedParts {
    /// Its pages, as ranges in order that neither touch nor overlap.
    pub ranges: Vec<Range<PageIndex>>,
    /// The page after the last of the file.
    pub end: PageIndex,
    /// A mapping shows the segments of a program.
    pub has_segments: bool,
}

impl Job {
    /// What is mapped of each file, in their order.
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
            of_file.ranges = merged(std::mem::take(&mut of_file.ranges));
        }
        all
    }
}
