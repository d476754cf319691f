//! One access of a probe.

use serde::{Deserialize, Serialize};

use filemap_core::units::PageIndex;

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Reads a byte of a page of the mapping, counted from its beginning.
    Touch(PageIndex),
    /// Writes a byte of a page of a private mapping.
    Store(PageIndex),
    /// Calls the code at the start of a page of an executable mapping: it has to be [`RETURN`].
    Call(PageIndex),
    /// `read(2)`s from the file, through the same open file as the mapping.
    Read {
        /// Where in the file, in bytes.
        offset: u64,
        /// How much: up to [`MAX_READ_BYTES`].
        bytes: u64,
    },
}

/// The instruction that returns to the caller, one byte long, on x86-64: the only machine on which
/// a probe calls what it maps.
pub const RETURN: u8 = 0xc3;

/// The longest single read.
pub const MAX_READ_BYTES: u64 = 256 << 20;
