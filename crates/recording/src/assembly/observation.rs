//! Observations: the input of an assembly.

use std::path::PathBuf;

/// PID, and the number of execve(2) calls that the process had made.
pub type ProcessImage = (u32, u32);

/// An action of a thread.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Observation {
    pub process: ProcessImage,
    pub thread: u32,
    /// The user CPU time of the thread at that point, in nanoseconds.
    pub user_ns: u64,
    pub action: Action,
}

#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Action {
    /// The process starts, created by fork number `fork` of `parent`; 0 if that fork was not
    /// observed.
    Start {
        parent: u32,
        fork: u64,
        program: PathBuf,
    },
    /// The process forks, for the `fork`th time.
    Fork {
        fork: u64,
    },
    /// The process has a file open, which later actions refer to by `number`.
    Open {
        number: u64,
        file: ObservedFile,
    },
    /// The size of the file has changed to that in `file`.
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
    /// See [`crate::EventKind::Unseen`].
    Unseen {
        address: u64,
        length: u64,
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
    /// Pages of a file that were cached when it was first seen: first page and number of pages.
    Cached {
        device: u64,
        inode: u64,
        ranges: Vec<[u64; 2]>,
    },
    /// See [`crate::EventKind::Memory`].
    Memory {
        anonymous_bytes: u64,
        peak_bytes: u64,
    },
    Exit,
}

/// A recorded file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct ObservedFile {
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
    pub size_bytes: u64,
}
