//! What processes do, as it goes into a recording.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// A process, and how many programs it was before by exec.
pub type ProcessImage = (u32, u32);

/// Something that a thread of a process did.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Observation {
    pub process: ProcessImage,
    pub thread: u32,
    /// The user time of the thread until then, in nanoseconds.
    pub user_ns: u64,
    pub action: Action,
}

#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Action {
    /// The process begins, made by this fork of `parent` where that is recorded.
    Start {
        parent: u32,
        fork: u64,
        program: PathBuf,
    },
    /// It forks for the time with this number.
    Fork {
        fork: u64,
    },
    /// It has a file open. It is called by this number from here on.
    Open {
        number: u64,
        file: ObservedFile,
    },
    /// The file has the size that is told with it now.
    Resize {
        file: ObservedFile,
    },
    Map {
        open: u64,
        address: u64,
        length: u64,
        offset_bytes: u64,
        protection: u32,
        flags: u32,
    },
    Unmap {
        address: u64,
        length: u64,
    },
    Move {
        from: (u64, u64),
        to: (u64, u64),
    },
    Protect {
        address: u64,
        length: u64,
        protection: u32,
    },
    Madvise {
        address: u64,
        length: u64,
        advice: u32,
    },
    Touch {
        address: u64,
        is_write: bool,
    },
    Fadvise {
        open: u64,
        offset_bytes: u64,
        length: u64,
        advice: u32,
    },
    Readahead {
        open: u64,
        offset_bytes: u64,
        length: u64,
    },
    Read {
        open: u64,
        offset_bytes: u64,
        length: u64,
    },
    Exit,
}

/// A file that is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct ObservedFile {
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
    pub size_bytes: u64,
}

impl ObservedFile {
    /// The bytes of the file now, if it is still the one at its path.
    pub fn current_size_bytes(&self) -> Option<u64> {
        let found = fs::metadata(&self.path).ok()?;
        ((found.dev(), found.ino()) == (self.device, self.inode)).then_some(found.len())
    }
}
