//! What the files of jobs hold.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use filemap_core::units::PageIndex;
use filemap_job::program::{Job, NamedMapping};

use crate::probe::RETURN_OPCODE;
use crate::{Error, page_size, shutdown};

/// What is written at once.
const BLOCK_BYTES: usize = 1 << 20;

/// What a file made for a job holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileContents {
    /// Nothing: it has its size, and no blocks.
    Holes,
    /// A byte over and over. Any would do; this one is code that returns, wherever it is called.
    Returns,
    /// What the program has that the job maps. The pages of the program itself may be mapped by
    /// whoever runs it: those of a copy are the job's alone.
    CopyOf(PathBuf),
}

impl FileContents {
    /// What file number `file` of `program` holds if it is made.
    pub(crate) fn for_job_file(program: &Job, file: usize) -> Self {
        let maps_segments =
            |of: &NamedMapping| program.opens[of.open].file == file && !of.segments.is_empty();
        let named = &program.files[file].file;
        match &named.path {
            Some(path) if program.mappings.iter().any(maps_segments) => {
                FileContents::CopyOf(path.into())
            }
            _ => FileContents::from_spec(named),
        }
    }

    /// What `file` holds if it is made.
    pub(crate) fn from_spec(file: &filemap_job::File) -> Self {
        if file.sparse { FileContents::Holes } else { FileContents::Returns }
    }

    /// What `bytes` bytes of it take on disk.
    pub(crate) fn disk_bytes(&self, bytes: u64) -> u64 {
        if *self == FileContents::Holes { 0 } else { bytes }
    }

    /// Writes `bytes` bytes to an empty file, down to its device.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] for a program that is shorter;
    /// [`io::ErrorKind::Interrupted`] when the process is ending; what reading and writing give.
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

/// Refuses to call what does not return at once: pages `called` of `file`.
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
                        "a call of page {page} of '{}', whose code does more than return",
                        path.display()
                    ),
                    "give a size in place of the file: one of such code is made",
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(contents: &FileContents, bytes: u64) -> io::Result<Vec<u8>> {
        let file = tempfile::NamedTempFile::new()?;
        contents.write(file.as_file(), bytes)?;
        std::fs::read(file.path())
    }

    #[test]
    fn contents_are_as_long_as_asked_for() {
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
