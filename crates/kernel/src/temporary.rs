//! Files without a name, which go with this process however that ends.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::contents::Contents;

/// A new file of `bytes` bytes in `directory`, written to the disk.
///
/// # Errors
/// [`Error::NoSpace`]; a directory that cannot be written; a program to copy that has shrunk.
pub(crate) fn file(directory: &Path, bytes: u64, contents: &Contents) -> Result<File, Error> {
    let needed = if *contents == Contents::Holes { 0 } else { bytes };
    let free_bytes = require_space(directory, needed)?;
    let file = tempfile::tempfile_in(directory)
        .map_err(|error| Error::os("create a temporary file in", directory, error))?;
    contents.write(&file, bytes).map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::NoSpace { path: directory.to_owned(), bytes, free_bytes }
        }
        io::ErrorKind::UnexpectedEof => Error::call("copy the program, which has shrunk", error),
        _ => Error::os("write a temporary file in", directory, error),
    })?;
    Ok(file)
}

/// By which name this process and its children open `file`.
pub(crate) fn name_for_children(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
}

/// Checks that there is room for `bytes` in `directory`, and says how much there is.
pub(crate) fn require_space(directory: &Path, bytes: u64) -> Result<u64, Error> {
    let stat = rustix::fs::statvfs(directory)
        .map_err(|errno| Error::os("find the free space of", directory, errno))?;
    let free_bytes = stat.f_bavail.saturating_mul(stat.f_frsize);
    if bytes <= free_bytes {
        return Ok(free_bytes);
    }
    Err(Error::NoSpace { path: directory.to_owned(), bytes, free_bytes })
}
