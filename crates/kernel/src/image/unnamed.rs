//! Temporary files without a name, which go with this process.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use super::Error;

/// An unlinked temporary file in `dir`.
pub(super) fn in_dir(dir: &Path) -> Result<File, Error> {
    tempfile::tempfile_in(dir).map_err(|source| Error::scratch(dir, source))
}

/// A name by which a child process can open `file`, which has none of its own.
pub(super) fn name_for_child(file: impl AsFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_fd().as_raw_fd())
}
