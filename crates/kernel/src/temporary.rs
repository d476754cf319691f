//! Files without a name, which go with this process however that ends.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::Error;

/// What is written at once.
const BLOCK_BYTES: usize = 1 << 20;

/// A new file of `bytes` bytes in `directory`, written to the disk unless it is `sparse`.
///
/// # Errors
/// [`Error::NoSpace`]; a directory that cannot be written.
pub(crate) fn file(directory: &Path, bytes: u64, sparse: bool) -> Result<File, Error> {
    let free_bytes = require_space(directory, if sparse { 0 } else { bytes })?;
    let file = tempfile::tempfile_in(directory)
        .map_err(|error| Error::os("create a temporary file in", directory, error))?;
    fill(&file, bytes, sparse).map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::NoSpace { path: directory.to_owned(), bytes, free_bytes }
        }
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

fn fill(mut file: &File, bytes: u64, sparse: bool) -> io::Result<()> {
    if sparse {
        file.set_len(bytes)?;
    } else {
        let block = vec![0x5a; BLOCK_BYTES];
        let mut left = bytes;
        while left > 0 {
            let length = left.min(BLOCK_BYTES as u64);
            file.write_all(&block[..length as usize])?;
            left -= length;
        }
    }
    file.sync_all()
}
