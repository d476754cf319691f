//! The lines of a trace that was recorded.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::{Error, shutdown};

/// Gives `each` the lines of the trace at `path`, one after the other.
///
/// # Errors
/// When a signal ends this process, when the trace cannot be read, and those of `each`.
pub(super) fn each_line(
    path: &Path,
    mut each: impl FnMut(&str) -> Result<(), Error>,
) -> Result<(), Error> {
    let file = File::open(path).map_err(|error| Error::os("open", path, error))?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut line = Vec::new();
    loop {
        // An instance that somebody reads cannot be removed.
        shutdown::check()?;
        line.clear();
        let read = reader.read_until(b'\n', &mut line);
        if read.map_err(|error| Error::os("read", path, error))? == 0 {
            return Ok(());
        }
        each(&String::from_utf8_lossy(&line))?;
    }
}
