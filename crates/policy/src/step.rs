//! How a stream goes from one element to the next.

/// Pages from an element to the next one, and in which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pages: u64,
    is_back: bool,
}

impl Step {
    /// Page by page towards the end of the file.
    pub const FORWARD: Step = Step { pages: 1, is_back: false };

    /// From one page to another; `None` where both are the same.
    pub const fn between(from: u64, to: u64) -> Option<Step> {
        match to.abs_diff(from) {
            0 => None,
            pages => Some(Step { pages, is_back: to < from }),
        }
    }

    /// Whether elements are adjacent pages.
    pub const fn is_dense(self) -> bool {
        self.pages == 1
    }

    /// Whether elements go towards the start of the file.
    pub const fn is_back(self) -> bool {
        self.is_back
    }

    /// The number of the element `page` of a stream that begins at `start`; `None` where the stream
    /// does not come there.
    pub fn number(self, start: u64, page: u64) -> Option<u64> {
        let distance =
            if self.is_back { start.checked_sub(page)? } else { page.checked_sub(start)? };
        match distance.checked_rem(self.pages)? {
            0 => distance.checked_div(self.pages),
            _ => None,
        }
    }

    /// The page of element `number`; `None` where there is no such page.
    pub fn page(self, start: u64, number: u64) -> Option<u64> {
        let distance = number.checked_mul(self.pages)?;
        if self.is_back { start.checked_sub(distance) } else { start.checked_add(distance) }
    }

    /// How many elements a stream that begins at `start` has between the pages `first` and `last`,
    /// both included. `start` is one of these.
    pub fn elements(self, start: u64, first: u64, last: u64) -> u64 {
        let distance =
            if self.is_back { start.saturating_sub(first) } else { last.saturating_sub(start) };
        distance.checked_div(self.pages).unwrap_or(0).saturating_add(1)
    }
}
