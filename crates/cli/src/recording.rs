//! Reading recordings.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use filemap_kernel::storage::Storage;
use filemap_recording::convert::{self, Conversion, ExistingFile};
use filemap_recording::{MAGIC, Reader};

use crate::error::Error;
use filemap_study::input;

/// Whether the regular file at `path` starts with the header of a recording.
pub fn is_recording_path(path: &str) -> bool {
    let mut begin = [0; MAGIC.len()];
    let read = input::open(path).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == MAGIC
}

/// Opens the recording at `path`.
///
/// # Errors
/// If it cannot be read, or is not a recording.
pub fn open(path: &str) -> Result<Reader<BufReader<File>>, Error> {
    let (file, _) = input::regular("recording", path)?;
    Ok(Reader::new(BufReader::with_capacity(1 << 16, file), path)?)
}

/// Converts the recording at `path` to a job. Recorded files that still exist unchanged are
/// referred to by path.
///
/// # Errors
/// If it cannot be read, or has no file accesses.
pub fn read_job(path: &str) -> Result<Conversion, Error> {
    Ok(convert::convert(&mut open(path)?, &existing_file)?)
}

/// The file at `path`, if it is readable, not empty, and on a filesystem where its pages can be
/// dropped and counted.
pub fn existing_file(path: &Path) -> Option<ExistingFile> {
    // Opening a device can have side effects.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let (file, size_bytes) = input::regular("file", path.to_str()?).ok()?;
    let data = file.metadata().ok()?;
    let is_suited = Storage::find(path).is_ok_and(|place| place.unsuitable_reason().is_none());
    let identity = (data.dev(), data.ino());
    (size_bytes > 0 && is_suited).then_some(ExistingFile { size_bytes, identity })
}
