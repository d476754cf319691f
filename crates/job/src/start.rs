//! The contents of the page cache when a job begins.

use std::ops::Range;
use std::str::FromStr;

use filemap_core::units::{PageCount, PageIndex};

use crate::Error;
use crate::parts::merge_ranges;
use crate::size::shorten;

/// The contents of the page cache when a job begins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Start {
    /// Nothing of the files.
    #[default]
    Cold,
    /// All files.
    Warm,
    /// This part of each file, in blocks of 1 MiB that are spread evenly.
    Fraction(f64),
    /// The pages that were cached when the program was recorded.
    Recorded,
}

/// Size of the blocks of [`Start::Fraction`].
const BLOCK_BYTES: u64 = 1 << 20;

impl Start {
    /// The cached pages of a file of `pages` pages, of which `recorded` (pairs of a first page and
    /// a number) were cached when it was recorded.
    pub(crate) fn cached_pages(
        self,
        pages: PageCount,
        recorded: &[[u64; 2]],
        page_size: u64,
    ) -> Vec<Range<PageIndex>> {
        let range = |from: u64, end: u64| PageIndex(from)..PageIndex(end.min(pages.0));
        let ranges: Vec<Range<PageIndex>> = match self {
            Start::Cold => Vec::new(),
            Start::Warm => vec![range(0, pages.0)],
            Start::Fraction(fraction) => {
                let block = (BLOCK_BYTES / page_size).max(1);
                let before = |blocks: u64| (blocks as f64 * fraction) as u64;
                let is_cached = |number: &u64| before(number + 1) > before(*number);
                let blocks = (0..pages.0.div_ceil(block)).filter(is_cached);
                blocks.map(|number| range(number * block, (number + 1) * block)).collect()
            }
            Start::Recorded => recorded
                .iter()
                .map(|[first, count]| range(*first, first.saturating_add(*count)))
                .collect(),
        };
        merge_ranges(ranges.into_iter().filter(|range| range.start < range.end).collect())
    }
}

impl FromStr for Start {
    type Err = Error;

    fn from_str(text: &str) -> Result<Start, Error> {
        match (text, text.parse::<f64>()) {
            ("cold", _) => Ok(Start::Cold),
            ("warm", _) => Ok(Start::Warm),
            ("recorded", _) => Ok(Start::Recorded),
            (_, Ok(fraction)) if (0.0..=1.0).contains(&fraction) => Ok(Start::Fraction(fraction)),
            _ => Err(Error::UnknownName {
                what: "start",
                text: shorten(text),
                known: "cold, warm, recorded, and fractions from 0 to 1".to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(text: &str, pages: u64, recorded: &[[u64; 2]]) -> Vec<Range<u64>> {
        let start = text.parse::<Start>().unwrap();
        let ranges = start.cached_pages(PageCount(pages), recorded, 4096);
        ranges.into_iter().map(|range| range.start.0..range.end.0).collect()
    }

    #[test]
    fn ranges_of_each_start() {
        assert_eq!(cached("cold", 1000, &[[0, 5]]), []);
        let all = std::slice::from_ref(&(0..1000));
        assert_eq!(cached("warm", 1000, &[]), all);
        assert_eq!(cached("1", 1000, &[]), all);
        assert_eq!(cached("0", 1000, &[]), []);
        assert_eq!(cached("0.5", 1000, &[]), [256..512, 768..1000]);
        assert_eq!(cached("recorded", 100, &[[90, 50], [3, 2], [5, 1], [200, 9]]), [3..6, 90..100]);
        for text in ["1.5", "-0.1", "hot", "nan", ""] {
            assert!(text.parse::<Start>().is_err(), "{text}");
        }
    }
}
