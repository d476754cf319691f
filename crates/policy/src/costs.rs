//! What reads cost, and what is seen of a page.

/// What reads cost, as measured or as a machine's profile says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Nanoseconds of a fault that reads a single page.
    pub fault_ns: u64,
    /// Nanoseconds for each page of a long sequential read.
    pub page_ns: u64,
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
