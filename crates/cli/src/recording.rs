//! Reading recordings.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use filemap_kernel::storage::{Storage, layer_file};
use filemap_recording::convert::{self, Conversion, ExistingFile, UnseenPages};
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

/// Converts the recording at `path` to a job, with `unseen` for the pages that may have been
/// touched. Recorded files that still exist unchanged are referred to by path.
///
/// # Errors
/// If it cannot be read, or has no file accesses.
pub fn read_job(path: &str, unseen: UnseenPages) -> Result<Conversion, Error> {
    let mut reader = open(path)?;
    let mut conversion = convert::convert(&mut reader, &existing_file, unseen)?;
    // Without a file that could be asked, its device has the readahead and the folios, provided
    // that the recording was made on this machine.
    let is_own = rustix::system::uname().release().to_bytes() == reader.header().kernel.as_bytes();
    let storage = conversion.gone_device.filter(|_| is_own).and_then(Storage::of_device);
    if let Some(storage) = storage {
        conversion.program.read_ahead_kb = storage.read_ahead_kb;
        conversion.program.fs = Some(storage.folios().to_string());
    }
    Ok(conversion)
}

/// The file at `path`, if it is readable, not empty, and on a filesystem where its pages can be
/// dropped and counted. Of an overlay, that is the file in one of its layers.
pub fn existing_file(path: &Path) -> Option<ExistingFile> {
    // Opening a device can have side effects.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let (file, size_bytes) = input::regular("file", path.to_str()?).ok()?;
    let data = file.metadata().ok()?;
    let layer = layer_file(path);
    let place = Storage::find(layer.as_deref().unwrap_or(path));
    let is_suited = place.is_ok_and(|place| place.unsuitable_reason().is_none());
    let data = layer.as_ref().map_or(Ok(data), |layer| layer.metadata()).ok()?;
    let identity = (data.dev(), data.ino());
    (size_bytes > 0 && is_suited).then_some(ExistingFile { layer, size_bytes, identity })
}
