//! Limits of the kernel's numbers.

/// The largest order of a folio.
pub const MAX_ORDER: u8 = 13;

/// Bits of the id of an mm on 64 bits, 6.18.
pub const ID_BITS: u32 = 31;

/// The largest id of an mm; the first is 1.
pub const LAST_ID: u32 = (1 << ID_BITS) - 1;
