//! What became of a change that was to be undone.

use std::path::Path;
use std::{fs, io};

/// What a step came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoResult {
    /// Nothing of the change is left, or there never was anything.
    Gone,
    /// A setting of the machine was written back.
    Restored,
    /// Somebody else has changed a setting since, and it stays so.
    Kept {
        /// What it holds.
        found: String,
    },
}

/// Whether there is nothing by that name. What could not be made is refused for the same reason
/// when it is to be removed, such as a read-only filesystem, so that the error does not tell.
pub(crate) fn is_missing(path: &Path) -> bool {
    matches!(fs::symlink_metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound)
}
