//! Pages of a file, and what bounds them.

/// Pages of a file, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// The first.
    pub first: u64,
    /// The one after the last. Where it is not above `first` there are none.
    pub end: u64,
}

impl Pages {
    /// How many.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.end.saturating_sub(self.first)
    }

    /// Whether `page` is one of them.
    #[must_use]
    pub const fn contains(self, page: u64) -> bool {
        self.first <= page && page < self.end
    }
}

/// What may be read for a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The pages of the file that are mapped.
    pub mapping: Pages,
    /// Pages of the file, as it is now.
    pub file_pages: u64,
}

impl Bounds {
    /// The mapped pages that the file has.
    #[must_use]
    pub fn inside(self) -> Pages {
        Pages { end: self.mapping.end.min(self.file_pages), ..self.mapping }
    }
}
