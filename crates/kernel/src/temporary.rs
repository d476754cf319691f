//! Files without a name, which go with this process however that ends, and room for them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::contents::FileContents;

/// What stays free of a filesystem: one byte in so many, and not more than so many bytes.
const RESERVE_ONE_IN: u64 = 20;
const RESERVE_BYTES: u64 = 1 << 30;

/// What takes less room in a job of one file; others have a remedy of their own.
const SMALLER: &str = "a smaller --file-size, --sparse or --file";

/// A new file of `bytes` bytes in `directory`, written to the disk.
///
/// # Errors
/// [`Error::NoSpace`]; a directory that cannot be written; a program to copy that has shrunk.
pub(crate) fn file(directory: &Path, bytes: u64, contents: &FileContents) -> Result<File, Error> {
    require_space(directory, contents.disk_bytes(bytes))?;
    let file = unnamed(directory)?;
    write(&file, directory, bytes, contents)?;
    Ok(file)
}

/// A new file in `directory`, with nothing in it.
pub(crate) fn unnamed(directory: &Path) -> Result<File, Error> {
    tempfile::tempfile_in(directory)
        .map_err(|error| Error::os("create a temporary file in", directory, error))
}

/// Writes `bytes` bytes of `contents` to `file`, whose blocks are taken from the filesystem of
/// `directory`.
///
/// # Errors
/// [`Error::NoSpace`] where others took the room meanwhile; a program to copy that has shrunk.
pub(crate) fn write(
    file: &File,
    directory: &Path,
    bytes: u64,
    contents: &FileContents,
) -> Result<(), Error> {
    contents.write(file, bytes).map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => no_space(directory, bytes),
        // What a loop device makes of a full disk below it.
        _ if error.raw_os_error() == Some(libc::EIO) && is_full(directory) => {
            no_space(directory, bytes)
        }
        io::ErrorKind::Interrupted => Error::ShuttingDown,
        io::ErrorKind::UnexpectedEof => Error::call("copy the program, which has shrunk", error),
        _ => Error::os("write a temporary file in", directory, error),
    })
}

/// By which name this process and its children open `file`.
pub(crate) fn name_for_children(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
}

/// Checks that there is room for `bytes` in `directory`, and that enough stays free for others.
///
/// # Errors
/// [`Error::NoSpace`].
pub(crate) fn require_space(directory: &Path, bytes: u64) -> Result<(), Error> {
    let available_bytes = available_bytes(directory)?;
    if bytes == 0 || bytes <= available_bytes {
        return Ok(());
    }
    Err(Error::NoSpace { path: directory.to_owned(), bytes, available_bytes, remedy: SMALLER })
}

/// What may be written in `directory`.
pub(crate) fn available_bytes(directory: &Path) -> Result<u64, Error> {
    let (free, reserve) = free_bytes(directory)?;
    Ok(free.saturating_sub(reserve))
}

/// What is free where `directory` lies, and what of it stays so.
fn free_bytes(directory: &Path) -> Result<(u64, u64), Error> {
    let stat = rustix::fs::statvfs(directory)
        .map_err(|errno| Error::os("find the free space of", directory, errno))?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Ok((bytes(stat.f_bavail), (bytes(stat.f_blocks) / RESERVE_ONE_IN).min(RESERVE_BYTES)))
}

fn is_full(directory: &Path) -> bool {
    free_bytes(directory).is_ok_and(|(free, reserve)| free < reserve)
}

fn no_space(directory: &Path, bytes: u64) -> Error {
    let available_bytes = available_bytes(directory).unwrap_or(0);
    Error::NoSpace { path: directory.to_owned(), bytes, available_bytes, remedy: SMALLER }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_checked_before_anything_is_written() {
        let directory = std::env::temp_dir();
        let available = available_bytes(&directory).unwrap();
        require_space(&directory, 0).unwrap();
        let error = require_space(&directory, available.saturating_add(1 << 40)).unwrap_err();
        assert!(error.cannot_run_here(), "{error}");
        let text = error.to_string();
        let place = directory.display().to_string();
        assert!(text.contains(&place) && text.contains("TMPDIR"), "{text}");
        let (_, reserve) = free_bytes(&directory).unwrap();
        assert!(reserve > 0 && reserve <= RESERVE_BYTES);
        // Others write meanwhile.
        let is_free_less_reserve = (0..1000).any(|_| {
            let (free, reserve) = free_bytes(&directory).unwrap();
            available_bytes(&directory).unwrap() == free.saturating_sub(reserve)
        });
        assert!(is_free_less_reserve);
    }
}
