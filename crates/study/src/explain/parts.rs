//! What of the file a job maps.

use filemap_core::units::{PageCount, PageIndex};
use filemap_job::Job;

/// The mapped parts of a file, in the order in which accesses count their pages.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    parts: Vec<Part>,
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
    /// Before or behind all of them.
    Beyond,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    /// Pages of the parts before it.
    before: u64,
    start: PageIndex,
    pages: PageCount,
}

impl Parts {
    pub(super) fn of(job: &Job) -> Self {
        let of = &job.mappings[0];
        let executable = of.mapping.exec || of.segments.iter().any(|segment| segment.executable);
        let mut before = 0;
        let part = |(start, pages): (PageIndex, PageCount)| {
            before += pages.0;
            Part { before: before - pages.0, start, pages }
        };
        Parts { parts: of.parts().into_iter().map(part).collect(), executable, has_between: true }
    }

    /// These ranges, of which what lies between is nobody's: where they meet or overlap they are
    /// one.
    pub(super) fn merged(mut ranges: Vec<(PageIndex, PageCount)>) -> Self {
        ranges.sort_unstable();
        let mut parts: Vec<Part> = Vec::with_capacity(ranges.len());
        for (start, pages) in ranges {
            match parts.last_mut().filter(|last| start <= last.start + last.pages) {
                Some(last) => {
                    let end = (last.start + last.pages).max(start + pages);
                    last.pages = end - last.start;
                }
                None => parts.push(Part { before: 0, start, pages }),
            }
        }
        Parts { parts, executable: false, has_between: false }
    }

    /// The page of the file that access `page` is to.
    pub(super) fn locate(&self, page: u64) -> PageIndex {
        let behind = self.parts.partition_point(|part| part.before <= page);
        let part = self.parts[behind - 1];
        part.start + PageCount(page - part.before)
    }

    /// Where a page of the file lies.
    pub(super) fn region(&self, index: PageIndex) -> Region {
        let holds = |part: &Part| part.start <= index && index < part.start + part.pages;
        if self.parts.iter().any(holds) {
            return Region::Mapped;
        }
        let (start, end) = self.bounds();
        let between = self.has_between && start <= index && index < end;
        if between { Region::Between } else { Region::Beyond }
    }

    /// First page that is mapped, and the page behind the last one.
    pub(super) fn bounds(&self) -> (PageIndex, PageIndex) {
        let start = self.parts.iter().map(|part| part.start).min();
        let end = self.parts.iter().map(|part| part.start + part.pages).max();
        (start.unwrap_or_default(), end.unwrap_or_default())
    }

    /// What is mapped, each page once, in order.
    pub(super) fn disjoint(&self) -> Vec<(PageIndex, PageIndex)> {
        let range = |part: &Part| (part.start, part.start + part.pages);
        let mut ranges: Vec<_> = self.parts.iter().map(range).collect();
        ranges.sort_unstable();
        let mut end = PageIndex(0);
        let rest = |(from, to): (PageIndex, PageIndex)| {
            let from = from.max(end);
            end = end.max(to);
            (from, to.max(from))
        };
        ranges.into_iter().map(rest).collect()
    }

    /// Whether some part is mapped executable.
    pub(super) fn executable(&self) -> bool {
        self.executable
    }
}
