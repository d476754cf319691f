//! Where the pages are that are cached at the end.

use std::ops::Range;

use filemap_core::units::PageIndex;
use serde::{Deserialize, Serialize};

use crate::program::MappedParts;

/// Pages of the files in the page cache at the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cached {
    /// Those that are mapped.
    pub inside: Option<u64>,
    /// Those before the first page that is mapped of their file.
    pub before: Option<u64>,
    /// Those after the last.
    pub after: Option<u64>,
    /// Those between what is mapped, of a file of which several parts are, such as the segments of
    /// an ELF file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub between: Option<u64>,
}

impl Cached {
    /// Where what is cached of a file lies of which so much is mapped, where `count` says how many
    /// of a range of pages are cached. Of a file that is not mapped all of it is before the first
    /// page.
    ///
    /// # Errors
    /// Those of `count`.
    pub fn of<E>(
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

    /// Those of both files.
    pub(super) fn and(self, other: Cached) -> Cached {
        let sum = |of: fn(&Cached) -> Option<u64>| Some(of(&self)? + of(&other)?);
        let between = [self.between, other.between].into_iter().flatten();
        Cached {
            inside: sum(|cached| cached.inside),
            before: sum(|cached| cached.before),
            after: sum(|cached| cached.after),
            between: between.reduce(|one, other| one + other),
        }
    }

    /// All of them; `None` where the kernel does not tell.
    pub fn pages(&self) -> Option<u64> {
        Some(self.inside? + self.before? + self.after? + self.between.unwrap_or(0))
    }
}
