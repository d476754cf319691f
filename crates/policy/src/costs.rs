//! What reads cost, and what is seen of a page.

/// What reads cost, as measured or as a machine's profile says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Nanoseconds of a fault that reads a single page.
    pub fault_ns: u64,
    /// Nanoseconds for each page of a long sequential read.
    pub page_ns: u64,
}

/// What the kernel reads by itself around a page that is missing, where nothing is advised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How many pages. 0 where nobody knows, and where single pages are read whatever is decided.
    pub pages: u64,
    /// Nanoseconds for each of them, besides those of the fault.
    pub page_ns: u64,
}

impl Window {
    /// No window is known.
    pub const NONE: Window = Window { pages: 0, page_ns: 0 };
}

/// How a page was come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// It was missing: the fault has read it, or has waited for it.
    Major,
    /// It was in memory, and had no entry in the page table.
    Minor,
    /// It has an entry by now. That may be of a fault on a page near it.
    Seen,
}
