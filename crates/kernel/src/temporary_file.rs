//! Unnamed files, which disappear with this process however it ends: their contents, and the space
//! for them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use filemap_core::units::PageIndex;
use filemap_job::program::{Job, NamedMapping};

use crate::probe::RETURN_OPCODE;
use crate::{Error, page_size, shutdown};

/// Space of a filesystem to leave free: 1/20, at most 1 GiB.
const RESERVE_ONE_IN: u64 = 20;
const RESERVE_BYTES: u64 = 1 << 30;

/// Remedy for a job with one file; other jobs have their own.
const SMALLER: &str = "a smaller --file-size, --sparse or --file";

/// Creates a file of `bytes` bytes in `directory` and writes it to disk.
///
/// # Errors
/// [`Error::NoSpace`]; `directory` is not writable; a program to copy has shrunk.
pub(crate) fn file(directory: &Path, bytes: u64, contents: &FileContents) -> Result<File, Error> {
    require_space(directory, contents.disk_bytes(bytes))?;
    let file = unnamed(directory)?;
    write(&file, directory, bytes, contents)?;
    Ok(file)
}

/// Creates an empty unnamed file in `directory`.
pub(crate) fn unnamed(directory: &Path) -> Result<File, Error> {
    tempfile::tempfile_in(directory)
        .map_err(|error| Error::os("create a temporary file in", directory, error))
}

/// Writes `bytes` bytes of `contents` to `file`, whose blocks come from the filesystem of
/// `directory`.
///
/// # Errors
/// [`Error::NoSpace`] if others took the space meanwhile; a program to copy has shrunk.
pub(crate) fn write(
    file: &File,
    directory: &Path,
    bytes: u64,
    contents: &FileContents,
) -> Result<(), Error> {
    contents.write(file, bytes).map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => no_space(directory, bytes),
        // A loop device reports a full disk as EIO.
        _ if error.raw_os_error() == Some(libc::EIO) && is_full(directory) => {
            no_space(directory, bytes)
        }
        io::ErrorKind::Interrupted => Error::ShuttingDown,
        io::ErrorKind::UnexpectedEof => Error::call("copy the program, which has shrunk", error),
        _ => Error::os("write a temporary file in", directory, error),
    })
}

/// The path by which this process and its children open `file`.
pub(crate) fn name_for_children(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
}

/// Checks that `directory` has space for `bytes` bytes without its reserve.
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

/// Bytes that may be written in `directory`.
pub(crate) fn available_bytes(directory: &Path) -> Result<u64, Error> {
    let (free, reserve) = free_bytes(directory)?;
    Ok(free.saturating_sub(reserve))
}

/// Free bytes of the filesystem of `directory`, and the reserve.
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

/// Bytes per write.
const BLOCK_BYTES: usize = 1 << 20;

/// Contents of a file created for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileContents {
    /// One hole: no blocks are allocated.
    Holes,
    /// A repeated byte: the return instruction, so that any address can be called.
    Returns,
    /// A copy of the program that the job maps. Other processes that run the program map the
    /// original's pages, but nobody maps those of a copy.
    CopyOf(PathBuf),
}

impl FileContents {
    /// The contents of file number `file` of `program`, if it is to be created.
    pub(crate) fn for_job_file(program: &Job, file: usize) -> Self {
        let maps_segments = |named_mapping: &NamedMapping| {
            program.opens[named_mapping.open].file == file && !named_mapping.segments.is_empty()
        };
        let named = &program.files[file].file;
        match &named.path {
            Some(path) if program.mappings.iter().any(maps_segments) => {
                FileContents::CopyOf(path.into())
            }
            _ => FileContents::from_spec(named),
        }
    }

    /// The contents of `file`, if it is to be created.
    pub(crate) fn from_spec(file: &filemap_job::File) -> Self {
        if file.sparse { FileContents::Holes } else { FileContents::Returns }
    }

    /// Disk space that `bytes` bytes of it take.
    pub(crate) fn disk_bytes(&self, bytes: u64) -> u64 {
        if *self == FileContents::Holes { 0 } else { bytes }
    }

    /// Writes `bytes` bytes to an empty file and syncs it.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the program is shorter; [`io::ErrorKind::Interrupted`]
    /// if the process is shutting down; errors of reading and writing.
    pub(crate) fn write(&self, mut file: &File, bytes: u64) -> io::Result<()> {
        match self {
            FileContents::Holes => file.set_len(bytes)?,
            FileContents::Returns => {
                let block = vec![RETURN_OPCODE; BLOCK_BYTES];
                let mut left = bytes;
                while left > 0 {
                    if shutdown::has_begun() {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                    let length = left.min(BLOCK_BYTES as u64);
                    file.write_all(&block[..length as usize])?;
                    left -= length;
                }
            }
            FileContents::CopyOf(path) => {
                let copied = io::copy(&mut File::open(path)?.take(bytes), &mut file)?;
                if copied < bytes {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        file.sync_all()
    }
}

/// Refuses to call pages of `file` whose code does anything but return.
///
/// # Errors
/// [`Error::Unavailable`] names the first such page.
pub(crate) fn check_calls(
    called: &[Range<PageIndex>],
    file: &File,
    path: &Path,
) -> Result<(), Error> {
    let mut byte = [0];
    for range in called {
        for page in range.start.0..range.end.0 {
            file.read_exact_at(&mut byte, page * page_size())
                .map_err(|error| Error::os("read", path, error))?;
            if byte[0] != RETURN_OPCODE {
                return Err(Error::unavailable(
                    format!(
                        "a call of page {page} of '{}', whose code does not return immediately",
                        path.display()
                    ),
                    "give a size instead of the file: a file of such code is then made",
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_space_before_writing() {
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
        // Other tests write meanwhile.
        let is_free_less_reserve = (0..1000).any(|_| {
            let (free, reserve) = free_bytes(&directory).unwrap();
            available_bytes(&directory).unwrap() == free.saturating_sub(reserve)
        });
        assert!(is_free_less_reserve);
    }

    fn written(contents: &FileContents, bytes: u64) -> io::Result<Vec<u8>> {
        let file = tempfile::NamedTempFile::new()?;
        contents.write(file.as_file(), bytes)?;
        std::fs::read(file.path())
    }

    #[test]
    fn writes_contents_of_each_length() {
        assert_eq!(written(&FileContents::Holes, 5000).unwrap(), [0; 5000]);
        assert_eq!(written(&FileContents::Returns, 5000).unwrap(), [RETURN_OPCODE; 5000]);
        let original = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(original.path(), [7; 5000]).unwrap();
        let copy = FileContents::CopyOf(original.path().into());
        assert_eq!(written(&copy, 5000).unwrap(), [7; 5000]);
        assert_eq!(written(&copy, 4000).unwrap(), [7; 4000]);
        let short = written(&copy, 5001).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
    }
}
