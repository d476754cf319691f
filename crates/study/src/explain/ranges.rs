//! The parts of a file that a job maps or reads.

use filemap_core::units::{PageCount, PageIndex};
use filemap_job::Job;
use filemap_job::program::{NamedMapping, ProgramStep};

/// Disjoint, non-adjacent ranges of pages of a file, in order.
#[derive(Clone, Debug)]
pub(super) struct FileRanges {
    ranges: Vec<(PageIndex, PageIndex)>,
    /// The ranges are the segments of an ELF file, so that pages between two of them are counted
    /// apart from pages outside all of them.
    are_segments: bool,
}

/// Where a page lies with respect to [`FileRanges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageRegion {
    /// In one of the ranges.
    Inside,
    /// Between two segments.
    BetweenSegments,
    /// Outside of all ranges.
    Outside,
}

impl FileRanges {
    /// The pages of a file that `job` maps, or reads with `read(2)`.
    pub(super) fn new(job: &Job, file: usize) -> Self {
        let is_of_file = |open: usize| job.opens[open].file == file;
        let mapped = job.mappings.iter().filter(|mapping| is_of_file(mapping.open));
        let are_segments = mapped.clone().count() == 1
            && mapped.clone().all(|mapping| !mapping.segments.is_empty());
        let mapped = mapped.flat_map(NamedMapping::parts);
        let size = job.page_size();
        let read = job.steps().filter_map(|step| match step {
            ProgramStep::Read { open, offset_bytes, len_bytes, .. } if is_of_file(*open) => {
                let (first, end) = (offset_bytes / size, (offset_bytes + len_bytes).div_ceil(size));
                Some((PageIndex(first), PageCount(end - first)))
            }
            _ => None,
        });
        FileRanges { ranges: merged(mapped.chain(read).collect()), are_segments }
    }

    /// Where a page of the file lies.
    pub(super) fn region(&self, index: PageIndex) -> PageRegion {
        if self.ranges.iter().any(|&(start, end)| start <= index && index < end) {
            return PageRegion::Inside;
        }
        let (start, end) = self.bounds();
        if self.are_segments && start <= index && index < end {
            PageRegion::BetweenSegments
        } else {
            PageRegion::Outside
        }
    }

    /// The first page, and the page after the last one.
    pub(super) fn bounds(&self) -> (PageIndex, PageIndex) {
        let (first, last) = (self.ranges.first(), self.ranges.last());
        (first.copied().unwrap_or_default().0, last.copied().unwrap_or_default().1)
    }

    /// The first page of each range, and the page after its last one.
    pub(super) fn iter(&self) -> impl Iterator<Item = (PageIndex, PageIndex)> {
        self.ranges.iter().copied()
    }
}

/// Joins ranges that meet or overlap.
fn merged(mut ranges: Vec<(PageIndex, PageCount)>) -> Vec<(PageIndex, PageIndex)> {
    ranges.sort_unstable();
    let mut merged: Vec<(PageIndex, PageIndex)> = Vec::with_capacity(ranges.len());
    for (start, pages) in ranges {
        match merged.last_mut().filter(|(_, end)| start <= *end) {
            Some((_, end)) => *end = (*end).max(start + pages),
            None => merged.push((start, start + pages)),
        }
    }
    merged
}
