//! Whether a recorded program may have written to its files.

use std::path::{Path, PathBuf};

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
/// without its subject, if any. Recordings do not contain `write(2)` calls. Files for which
/// `is_temporary` holds do not count: such as the counters that a JVM maps and removes at its end.
///
/// # Errors
/// The events cannot be read.
pub fn may_write(
    events: impl Iterator<Item = Result<Event, Error>>,
    is_temporary: impl Fn(&Path) -> bool,
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
                (opens.get(open).copied(), "maps it so that it can be written")
            }
            EventKind::Protect { mapping, protection, .. } if protection & WRITABLE != 0 => {
                let mapped = made.get(mapping as usize).filter(|made| made.is_shared);
                let Some(mapped) = mapped else { continue };
                (opens.get(mapped.open).copied(), "makes a mapping of it writable")
            }
            EventKind::Touch { mapping, is_write: true, .. } => {
                let mapped = made.get(mapping as usize).filter(|made| made.is_shared);
                let Some(mapped) = mapped else { continue };
                (opens.get(mapped.open).copied(), "writes to it through a mapping")
            }
            EventKind::Truncate { file, .. } => (Some(file as usize), "changes its size"),
            _ => continue,
        };
        let path = file.and_then(|file| files.get(file)).map(PathBuf::as_path);
        if path.is_some_and(&is_temporary) {
            continue;
        }
        let shown = path.unwrap_or(Path::new("")).display().to_string();
        let shown = shown.replace(char::is_control, "?");
        return Ok(Some(format!("uses '{shown}' and {does}")));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_do_not_count() {
        let shared_writable = |open| EventKind::Map {
            open,
            address: 1 << 30,
            length_bytes: 4096,
            offset_bytes: 0,
            protection: 3,
            flags: 1,
        };
        let file = |path: &str| EventKind::File {
            path: path.into(),
            size_bytes: 4096,
            device: 1,
            inode: 2,
        };
        let does = |kinds: &[EventKind]| {
            let events = kinds.iter().cloned();
            let events = events.map(|kind| Ok(Event { thread: 0, wait_ns: 0, kind }));
            may_write(events, |path| path.starts_with("/tmp")).unwrap()
        };
        let temporary = [
            file("/tmp/hsperfdata/1"),
            EventKind::Open { file: 0 },
            EventKind::Truncate { file: 0, size_bytes: 32_768 },
            shared_writable(0),
        ];
        assert_eq!(does(&temporary), None);
        let kept = [file("/data/a"), EventKind::Open { file: 1 }, shared_writable(1)];
        let both = does(&[temporary.as_slice(), &kept].concat());
        assert_eq!(both.unwrap(), "uses '/data/a' and maps it so that it can be written");
    }
}
