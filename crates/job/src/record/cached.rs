//! Location of the pages in the page cache at the end of a run.

use std::ops::Range;

use filemap_core::units::PageIndex;
use serde::{Deserialize, Serialize};

use crate::program::MappedParts;

/// Number of pages of the files in the page cache at the end of a run, by location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cached {
    /// Pages that are mapped.
    pub inside: Option<u64>,
    /// Pages before the first mapped page of their file.
    pub before: Option<u64>,
    /// Pages after the last mapped page.
    pub after: Option<u64>,
    /// Pages between mapped parts, if there are several, such as the segments of an ELF file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub between: Option<u64>,
}

impl Cached {
    /// Counts the cached pages of a file by location; `count` returns the number of cached pages in
    /// a range. Pages of a file that is not mapped count as before the first mapped page.
    ///
    /// # Errors
    /// Errors of `count`.
    pub fn count_pages<E>(
        mapped: &MappedParts,
        mut count: impl FnMut(Range<PageIndex>) -> Result<u64, E>,
    ) -> Result<Cached, E> {
        let MappedParts { ranges, end, has_segments } = mapped;
        let mut count =
            |range: Range<PageIndex>| if range.is_empty() { Ok(0) } else { count(range) };
        let (mut inside, mut between) = (0, 0);
        for (number, range) in ranges.iter().enumerate() {
            inside += count(range.clone())?;
            if let Some(next) = ranges.get(number + 1) {
                between += count(range.end..next.start)?;
            }
        }
        let first = ranges.first().map_or(*end, |range| range.start);
        let last = ranges.last().map_or(*end, |range| range.end);
        Ok(Cached {
            inside: Some(inside),
            before: Some(count(PageIndex(0)..first)?),
            after: Some(count(last..*end)?),
            between: (*has_segments || ranges.len() > 1).then_some(between),
        })
    }

    /// The sum over both files.
    pub(super) fn and(self, other: Cached) -> Cached {
        let sum = |field: fn(&Cached) -> Option<u64>| Some(field(&self)? + field(&other)?);
        let between = [self.between, other.between].into_iter().flatten();
        Cached {
            inside: sum(|cached| cached.inside),
            before: sum(|cached| cached.before),
            after: sum(|cached| cached.after),
            between: between.reduce(|one, other| one + other),
        }
    }

    /// Total number of pages; `None` if the kernel does not report it.
    pub fn pages(&self) -> Option<u64> {
        Some(self.inside? + self.before? + self.after? + self.between.unwrap_or(0))
    }
}
