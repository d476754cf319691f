//! Invariants of counters, by the messages of the panics when they are broken.

use std::fmt;

/// The invariant of a folio's counters that a caller broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A batch of no page.
    EmptyBatch,
    /// More pages, or others, than the folio has.
    PagesBehindEnd {
        /// First page after the batch.
        end: usize,
        /// Pages of the folio.
        pages: usize,
    },
    /// More mappings than can be counted.
    TooManyMappings {
        /// Most mappings that the counter can hold.
        most: u32,
    },
    /// An mm unmapped more than it had mapped.
    NotMappedByMm {
        /// Id of the mm.
        mm: u32,
    },
    /// More was unmapped than all had mapped together.
    NotMapped,
    /// A page was unmapped that was not mapped.
    PageNotMapped,
    /// An entire mapping was removed of which there was none.
    NotMappedEntirely,
    /// More references of a folio were dropped than there were.
    NotReferenced {
        /// References that the folio had.
        held: u32,
        /// References that were dropped.
        dropped: u32,
    },
    /// A page was freed that somebody maps.
    FreedWhileMapped,
    /// An id was given back that nobody had.
    IdNotInUse {
        /// The id.
        mm: u32,
    },
}

impl Broken {
    /// Ends the thread: a count that is wrong would free memory that is in use.
    #[cold]
    #[track_caller]
    pub(crate) fn panic(self) -> ! {
        panic!("{self}")
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::EmptyBatch => write!(f, "a batch has at least one page; this one has none"),
            Broken::PagesBehindEnd { end, pages } => write!(
                f,
                "a batch lies within its folio; this one ends at page {end} of {pages} pages"
            ),
            Broken::TooManyMappings { most } => {
                write!(f, "a folio has at most {most} mappings; these would be more")
            }
            Broken::NotMappedByMm { mm } => {
                write!(f, "an mm unmaps what it has mapped; mm {mm} had not mapped as much")
            }
            Broken::NotMapped => {
                write!(f, "what is unmapped is mapped; fewer pages of this folio were mapped")
            }
            Broken::PageNotMapped => {
                write!(f, "a page that is unmapped is mapped; this one was not")
            }
            Broken::NotMappedEntirely => {
                write!(f, "an entire mapping that is removed exists; this folio had none")
            }
            Broken::NotReferenced { held, dropped } => write!(
                f,
                "a reference that is dropped is held; a folio had {held} and lost {dropped}"
            ),
            Broken::FreedWhileMapped => {
                write!(f, "a page that is freed is not mapped; this one was")
            }
            Broken::IdNotInUse { mm } => {
                write!(f, "an id that is given back is in use; mm id {mm} was not")
            }
        }
    }
}
