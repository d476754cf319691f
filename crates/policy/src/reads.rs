//! The answer: pages that are worth reading.

use crate::pages::Pages;

/// Pages to read, in the order in which the program is likely to come to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    parts: Vec<Part>,
    /// It is a region or more, which is bought for what the program does later.
    pub is_for_later: bool,
}

/// Adjacent pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    pages: Pages,
    /// The program comes to the last page first.
    is_back: bool,
}

impl Reads {
    /// Nothing to read.
    pub const NONE: Reads = Reads { parts: Vec::new(), is_for_later: false };

    /// Adds `pages` after the others, of which the program comes to the last one first where
    /// `is_back`.
    pub(crate) fn add(&mut self, pages: Pages, is_back: bool) {
        if pages.count() > 0 {
            self.parts.push(Part { pages, is_back });
        }
    }

    /// How many pages these are.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.parts.iter().map(|part| part.pages.count()).sum()
    }

    /// The pages as ranges.
    pub fn ranges(&self) -> impl Iterator<Item = Pages> + '_ {
        self.parts.iter().map(|part| part.pages)
    }

    /// The pages as ranges of at most `most` pages, and at least 1: what one call can ask for.
    pub fn pieces(&self, most: u64) -> impl Iterator<Item = Pages> + '_ {
        let most = most.max(1);
        self.parts.iter().flat_map(move |&Part { pages, is_back }| {
            (0..pages.count().div_ceil(most)).map(move |number| {
                let skipped = number * most;
                let (first, end) = if is_back {
                    let end = pages.end - skipped;
                    (end.saturating_sub(most).max(pages.first), end)
                } else {
                    let first = pages.first + skipped;
                    (first, first.saturating_add(most).min(pages.end))
                };
                Pages { first, end }
            })
        })
    }
}
