//! Whether a recorded program may have written to its files.

use std::path::PathBuf;

use crate::{Error, Event, EventKind};

/// `PROT_WRITE`.
const WRITABLE: u32 = 2;

/// `MAP_TYPE`, and its value `MAP_PRIVATE`.
const KIND: u32 = 0xf;
const PRIVATE: u32 = 2;

/// The open file description of a mapping, and whether writes to the mapping reach the file.
struct MappedOpenFile {
    open: usize,
    is_shared: bool,
}

/// The first of the `events` by which the program writes to a file or may do so, as a sentence
/// without its subject, if any. Recordings do not contain `write(2)` calls.
///
/// # Errors
/// The events cannot be read.
pub fn may_write(
    events: impl Iterator<Item = Result<Event, Error>>,
) -> Result<Option<String>, Error> {
    let (mut files, mut opens): (Vec<PathBuf>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut made: Vec<MappedOpenFile> = Vec::new();
    for event in events {
        let (file, does) = match event?.kind {
            EventKind::File { path, .. } => {
                files.push(path);
                continue;
            }
            EventKind::Open { file } => {
                opens.push(file as usize);
                continue;
            }
            EventKind::Map { open, protection, flags, .. } => {
                let open = open as usize;
                let is_shared = flags & KIND != PRIVATE;
                made.push(MappedOpenFile { open, is_shared });
                if !is_shared || protection & WRITABLE == 0 {
                    continue;
                }
                (opens.get(open), "maps it so that it can be written")
            }
            EventKind::Protect { mapping, protection, .. } if protection & WRITABLE != 0 => {
                let mapped = made.get(mapping as usize).filter(|made| made.is_shared);
                let Some(mapped) = mapped else { continue };
                (opens.get(mapped.open), "makes a mapping of it writable")
            }
            EventKind::Touch { mapping, is_write: true, .. } => {
                let mapped = made.get(mapping as usize).filter(|made| made.is_shared);
                let Some(mapped) = mapped else { continue };
                (opens.get(mapped.open), "writes to it through a mapping")
            }
            EventKind::Truncate { file, .. } => {
                let shown = files.get(file as usize).map(|path| path.display().to_string());
                return Ok(Some(format!("changes the size of '{}'", shown.unwrap_or_default())));
            }
            _ => continue,
        };
        let shown = file.and_then(|file| files.get(*file)).map(|path| path.display().to_string());
        let shown = shown.unwrap_or_default().replace(char::is_control, "?");
        return Ok(Some(format!("uses '{shown}' and {does}")));
    }
    Ok(None)
}
