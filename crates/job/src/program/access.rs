//! Kinds of access to a page.

use serde::{Deserialize, Serialize};

/// What an access through a mapping does to its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Reads a byte.
    Read,
    /// Writes a byte, to a private mapping.
    Write,
    /// Calls the code at the start of the page, which returns immediately.
    Call,
}
