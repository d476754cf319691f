//! What an access to a page does.

use serde::{Deserialize, Serialize};

/// What an access through a mapping does to its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Reads a byte.
    Read,
    /// Writes a byte, to a private mapping.
    Write,
    /// Calls the code that the page begins with, which returns at once.
    Call,
}
