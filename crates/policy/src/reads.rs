//! Ranges of pages, their bounds, and the answer to a fault.

/// Pages to read, in the order in which the program is likely to access them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadPlan {
    parts: Vec<ReadPart>,
    /// Contains whole regions, read for later accesses.
    pub is_for_later: bool,
}

/// A range of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReadPart {
    pages: PageRange,
    /// The program accesses the last page first.
    is_back: bool,
}

impl ReadPlan {
    /// Nothing to read.
    pub const NONE: ReadPlan = ReadPlan { parts: Vec::new(), is_for_later: false };

    /// Appends `pages`; with `is_back` the program accesses the last one first.
    pub(crate) fn add(&mut self, pages: PageRange, is_back: bool) {
        if pages.count() > 0 {
            self.parts.push(ReadPart { pages, is_back });
        }
    }

    /// Total number of pages.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.parts.iter().map(|part| part.pages.count()).sum()
    }

    /// The pages as ranges.
    pub fn ranges(&self) -> impl Iterator<Item = PageRange> + '_ {
        self.parts.iter().map(|part| part.pages)
    }

    /// The pages as ranges of at most `most` pages (at least 1), the limit of one call.
    pub fn pieces(&self, most: u64) -> impl Iterator<Item = PageRange> + '_ {
        let most = most.max(1);
        self.parts.iter().flat_map(move |&ReadPart { pages, is_back }| {
            (0..pages.count().div_ceil(most)).map(move |number| {
                let skipped = number * most;
                let (first, end) = if is_back {
                    let end = pages.end - skipped;
                    (end.saturating_sub(most).max(pages.first), end)
                } else {
                    let first = pages.first + skipped;
                    (first, first.saturating_add(most).min(pages.end))
                };
                PageRange { first, end }
            })
        })
    }
}

/// A range of file pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageRange {
    /// First page.
    pub first: u64,
    /// The page after the last. The range is empty unless this is above `first`.
    pub end: u64,
}

impl PageRange {
    /// Number of pages.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.end.saturating_sub(self.first)
    }

    /// Whether `page` is in the range.
    #[must_use]
    pub const fn contains(self, page: u64) -> bool {
        self.first <= page && page < self.end
    }
}

/// The pages that may be read for a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The mapped pages of the file.
    pub mapping: PageRange,
    /// Current size of the file in pages.
    pub file_pages: u64,
}

impl Bounds {
    /// The mapped pages inside the file.
    #[must_use]
    pub fn readable(self) -> PageRange {
        PageRange { end: self.mapping.end.min(self.file_pages), ..self.mapping }
    }
}
