//! What of the file a job maps.

use filemap_core::units::{PageCount, PageIndex};
use filemap_job::Job;
use filemap_job::program::{NamedMapping, ProgramStep};

/// The mapped parts of a file.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// The first page of each, in order, and how many there are.
    parts: Vec<(PageIndex, PageCount)>,
    executable: bool,
    /// What lies between two parts is told from what lies outside of all.
    has_between: bool,
}

/// Where a page lies beside what is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Region {
    /// In a part that is mapped.
    Mapped,
    /// Between two of them.
    Between,
    /// Before or after all of them.
    Beyond,
}

impl Parts {
    pub(super) fn of(job: &Job) -> Self {
        let of = &job.mappings[0];
        let executable = of.mapping.exec || of.segments.iter().any(|segment| segment.executable);
        Parts { executable, has_between: true, ..Parts::merged(of.parts()) }
    }

    /// These ranges, where they meet or overlap one. What lies between them is nobody's.
    fn merged(mut ranges: Vec<(PageIndex, PageCount)>) -> Self {
        ranges.sort_unstable();
        let mut parts: Vec<(PageIndex, PageCount)> = Vec::with_capacity(ranges.len());
        for (start, pages) in ranges {
            match parts.last_mut().filter(|(first, length)| start <= *first + *length) {
                Some((first, length)) => *length = (*first + *length).max(start + pages) - *first,
                None => parts.push((start, pages)),
            }
        }
        Parts { parts, executable: false, has_between: false }
    }

    /// The pages of a file that the program reaches, through a mapping or by reading.
    pub(super) fn reached(program: &Job, file: usize) -> Self {
        let mapped = program.mappings.iter().filter(|of| program.opens[of.open].file == file);
        let mapped = mapped.flat_map(NamedMapping::parts);
        let size = program.page_size();
        let read = program.steps().filter_map(|step| match step {
            ProgramStep::Read { open, offset_bytes, len_bytes, .. }
                if program.opens[*open].file == file =>
            {
                let (first, end) = (offset_bytes / size, (offset_bytes + len_bytes).div_ceil(size));
                Some((PageIndex(first), PageCount(end - first)))
            }
            _ => None,
        });
        Parts::merged(mapped.chain(read).collect())
    }

    /// Where a page of the file lies.
    pub(super) fn region(&self, index: PageIndex) -> Region {
        if self.ranges().any(|(start, end)| start <= index && index < end) {
            return Region::Mapped;
        }
        let (start, end) = self.bounds();
        let between = self.has_between && start <= index && index < end;
        if between { Region::Between } else { Region::Beyond }
    }

    /// First page that is mapped, and the page after the last one.
    pub(super) fn bounds(&self) -> (PageIndex, PageIndex) {
        let (first, last) = (self.ranges().next(), self.ranges().last());
        (first.unwrap_or_default().0, last.unwrap_or_default().1)
    }

    /// The first page of each part, and the page after its last one.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (PageIndex, PageIndex)> {
        self.parts.iter().map(|(start, pages)| (*start, *start + *pages))
    }

    /// Whether some part is mapped executable.
    pub(super) fn executable(&self) -> bool {
        self.executable
    }
}
