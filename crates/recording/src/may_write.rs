//! Whether a program may write to its files, as far as its recording says.

use std::path::PathBuf;

use crate::{Error, Event, EventKind};

/// `PROT_WRITE`.
const WRITABLE: u32 = 2;

/// The bits of a mapping's flags that say its kind, of which 2 is `MAP_PRIVATE`.
const KIND: u32 = 0xf;
const PRIVATE: u32 = 2;

/// Where a mapping is: which file, and whether what is written there reaches it.
struct MappedFile {
    open: usize,
    is_shared: bool,
}

/// What the `events` of a recording have of a program that may write to its files, as a sentence
/// without its subject; `None` where they have nothing of the kind. Files that are written with
/// `write(2)` are not in a recording.
///
/// # Errors
/// When they cannot be read.
pub fn may_write(
    events: impl Iterator<Item = Result<Event, Error>>,
) -> Result<Option<String>, Error> {
    let (mut files, mut opens): (Vec<PathBuf>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut made: Vec<MappedFile> = Vec::new();
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
                made.push(MappedFile { open, is_shared });
                if !is_shared || protection & WRITABLE == 0 {
                    continue;
                }
                (opens.get(open), "maps it so that it can be written")
            }
            EventKind::Protect { mapping, protection, .. } if protection & WRITABLE != 0 => {
                let of = made.get(mapping as usize).filter(|made| made.is_shared);
                let Some(of) = of else { continue };
                (opens.get(of.open), "makes a mapping of it writable")
            }
            EventKind::Touch { mapping, is_write: true, .. } => {
                let of = made.get(mapping as usize).filter(|made| made.is_shared);
                let Some(of) = of else { continue };
                (opens.get(of.open), "writes to it through a mapping")
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
