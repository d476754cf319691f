//! Errors, which a caller can handle, and misuse, which panics.

use std::fmt;

use crate::folio::Order;
use crate::mm_id::MmId;

/// A request that cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No such order.
    Order(u32),
    /// A folio of order 0 is not large.
    NotLarge,
    /// No mm has this id.
    Id(u32),
    /// The size of a set of ids.
    Ids(u32),
    /// Too few contiguous free pages.
    NoMemory {
        /// Pages of the folio.
        needed: usize,
        /// Free pages in all.
        free: usize,
    },
    /// This program cannot allocate as much memory.
    Memory {
        /// Pages of 4 KiB that were requested.
        pages: usize,
    },
    /// An unmapped address.
    NotMapped {
        /// The page.
        page: usize,
    },
    /// All ids are in use.
    NoIdLeft {
        /// Size of the set.
        ids: u32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Order(order) => {
                let max = Order::MAX.get();
                write!(f, "no folio has order {order}; the largest order is {max}")
            }
            Error::NotLarge => {
                write!(f, "a folio of order 0 has no owners; the smallest order is 1")
            }
            Error::Id(id) => {
                let (bits, last) = (MmId::BITS, MmId::LAST.get());
                write!(f, "no mm has the id {id}; ids have {bits} bits, 1 to {last}")
            }
            Error::Ids(ids) => {
                let last = MmId::LAST.get();
                write!(f, "a set cannot have {ids} mm ids; it has 1 to {last}")
            }
            Error::NoMemory { needed, free } => write!(
                f,
                "a folio of {needed} pages does not fit into {free} free pages of memory; \
                 give it more memory"
            ),
            Error::Memory { pages } => {
                write!(f, "no memory for {pages} pages of 4 KiB; ask for fewer pages")
            }
            Error::NotMapped { page } => write!(f, "nothing is mapped at page {page}"),
            Error::NoIdLeft { ids } => {
                write!(f, "all {ids} mm ids are in use; drop an address space to free one")
            }
        }
    }
}

impl std::error::Error for Error {}

/// An invariant of the counters that a caller broke. It ends in a panic with this message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// A batch without pages.
    EmptyBatch,
    /// A batch beyond the end of the folio.
    BatchTooLong {
        /// First page after the batch.
        end: usize,
        /// Pages of the folio.
        pages: usize,
    },
    /// More mappings than can be counted.
    TooManyMappings {
        /// Maximum of the counter.
        max: u32,
    },
    /// An mm unmapped more than it had mapped.
    NotMappedByMm {
        /// Id of the mm.
        mm: u32,
    },
    /// More was unmapped than all mms had mapped.
    NotMapped,
    /// An unmapped page was unmapped.
    PageNotMapped,
    /// More references of a folio were dropped than were held.
    NotReferenced {
        /// References of the folio.
        held: u32,
        /// References that were dropped.
        dropped: u32,
    },
    /// A mapped page was freed.
    FreedWhileMapped,
    /// An id was released that was not in use.
    IdNotInUse {
        /// The id.
        mm: u32,
    },
}

impl Misuse {
    /// Panics: a wrong count would free memory that is in use.
    #[cold]
    #[track_caller]
    pub(crate) fn panic(self) -> ! {
        panic!("{self}")
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misuse::EmptyBatch => write!(f, "a batch has at least one page; this one has none"),
            Misuse::BatchTooLong { end, pages } => write!(
                f,
                "a batch lies within its folio; this one ends at page {end} of {pages} pages"
            ),
            Misuse::TooManyMappings { max } => {
                write!(f, "a folio has at most {max} mappings; these would be more")
            }
            Misuse::NotMappedByMm { mm } => {
                write!(f, "mm {mm} unmaps more pages of this folio than it has mapped")
            }
            Misuse::NotMapped => write!(f, "more pages of this folio are unmapped than mapped"),
            Misuse::PageNotMapped => write!(f, "a page is unmapped that is not mapped"),
            Misuse::NotReferenced { held, dropped } => {
                write!(f, "{dropped} references of a folio are dropped, of {held} that are held")
            }
            Misuse::FreedWhileMapped => write!(f, "a page is freed that is mapped"),
            Misuse::IdNotInUse { mm } => write!(f, "mm id {mm} is released but not in use"),
        }
    }
}
