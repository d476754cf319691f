//! How much memory counters take. The compiler checks the table.

use crate::{Mapcount, MmOwner, NoPageMapcount, PageMapcount, PreciseOwners};

/// The state of one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Its type.
    pub name: &'static str,
    /// Bytes for a folio.
    pub folio_bytes: usize,
    /// Bytes for each of its pages.
    pub page_bytes: usize,
}

/// All configurations. A type of another size does not compile.
pub const SIZES: [Size; 4] = [
    size::<PageMapcount>("PageMapcount", 12, 4),
    size::<MmOwner>("MmOwner", 32, 4),
    size::<NoPageMapcount>("NoPageMapcount", 24, 0),
    size::<PreciseOwners>("PreciseOwners", 24, 0),
];

const fn size<C: Mapcount>(name: &'static str, folio_bytes: usize, page_bytes: usize) -> Size {
    assert!(size_of::<C>() == folio_bytes, "a folio's state has another size");
    assert!(size_of::<C::Page>() == page_bytes, "a page's state has another size");
    Size { name, folio_bytes, page_bytes }
}
