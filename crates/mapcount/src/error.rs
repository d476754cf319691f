//! What can be asked for and not be had.

use std::fmt;

use crate::limits::{ID_BITS, LAST_ID, MAX_ORDER};

/// Why a value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No such order.
    Order(u32),
    /// One page is no large folio.
    NotLarge,
    /// No mm has this id.
    Id(u32),
    /// A set of this many ids cannot be.
    Ids(u32),
    /// Too few free pages.
    NoMemory {
        /// Pages that are needed, next to each other.
        needed: usize,
        /// Pages that are free.
        free: usize,
    },
    /// This program cannot get so much memory.
    Memory {
        /// Pages of 4 KiB that were asked for.
        pages: usize,
    },
    /// An address at which nothing is mapped.
    NothingMapped {
        /// The page.
        page: usize,
    },
    /// A mapping of pages that the folio does not have.
    PagesOutside {
        /// First page after the mapping.
        end: usize,
        /// Pages of the folio.
        pages: usize,
    },
    /// An mm that maps a page twice.
    MappedTwice {
        /// The page.
        page: usize,
    },
    /// More mappings of a folio than can be counted.
    Mappings {
        /// The number of mappings.
        mappings: usize,
        /// Most mappings that the counter can hold.
        most: u32,
    },
    /// All ids are in use.
    NoIdLeft {
        /// How many there are.
        ids: u32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Order(order) => {
                write!(f, "no folio has order {order}; the largest order is {MAX_ORDER}")
            }
            Error::NotLarge => {
                write!(f, "a folio of order 0 has no owners; the smallest order is 1")
            }
            Error::Id(id) => {
                write!(f, "no mm has the id {id}; ids have {ID_BITS} bits, 1 to {LAST_ID}")
            }
            Error::Ids(ids) => {
                write!(f, "there cannot be {ids} mm ids; there are 1 to {LAST_ID} of them")
            }
            Error::NoMemory { needed, free } => write!(
                f,
                "a folio of {needed} pages does not fit into {free} free pages of memory; \
                 give it more memory"
            ),
            Error::Memory { pages } => {
                write!(f, "there is no memory for {pages} pages of 4 KiB; ask for fewer pages")
            }
            Error::NothingMapped { page } => write!(f, "nothing is mapped at page {page}"),
            Error::PagesOutside { end, pages } => {
                write!(f, "a mapping ends at page {end} of a folio of {pages} pages")
            }
            Error::MappedTwice { page } => {
                write!(f, "an mm maps page {page} twice; it can map a page once")
            }
            Error::Mappings { mappings, most } => {
                write!(f, "{mappings} mappings of a folio are too many; {most} can be counted")
            }
            Error::NoIdLeft { ids } => {
                write!(f, "all {ids} mm ids are in use; one is free again when an mm is gone")
            }
        }
    }
}

impl std::error::Error for Error {}
