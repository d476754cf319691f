//! What the governor asks for, and what came of it.

use std::sync::Arc;

use filemap_attach::{FileId, MappedRange};
use filemap_policy::Pages;

use crate::file::OpenFile;

/// A mapping to take: to open its file and to advise it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeMapping {
    pub id: u64,
    pub pid: u32,
    /// The thread that mapped it, or one that has just run.
    pub tid: u32,
    pub range: MappedRange,
    /// If it is advised RANDOM, that may be this governor's advice.
    pub may_be_inherited: bool,
    /// How often it was asked for, this time included.
    pub tries: u32,
    /// The thread has just read something by a fault there.
    pub has_faulted: bool,
    /// It is not advised: the kernel's own readahead of this file costs less.
    pub prefers_kernel: bool,
}

/// A mapping whose advice is to be restored, since the kernel's own readahead costs less there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseMapping {
    pub id: u64,
    pub pid: u32,
    /// A thread that has just read something by a fault there.
    pub tid: u32,
    pub range: MappedRange,
}

/// Something to do.
#[derive(Clone, Debug)]
pub enum Request {
    Task(AdvisorTask),
    Read {
        id: FileId,
        file: Arc<OpenFile>,
        pages: Pages,
        is_for_later: bool,
    },
    /// Have touches of a range told, or no more.
    Watch {
        pid: u32,
        range: MappedRange,
    },
    Unwatch {
        pid: u32,
        range: MappedRange,
    },
}

/// Something to do that may take its time.
#[derive(Clone, Debug)]
pub enum AdvisorTask {
    Take(TakeMapping),
    Leave(ReleaseMapping),
    /// Restore the advice of a range that is not to be governed any more.
    Restore {
        pid: u32,
        range: MappedRange,
    },
    /// A process has inherited mappings with advice.
    NoteInherited {
        pid: u32,
        ranges: Vec<MappedRange>,
    },
    /// Read what a process has mapped. Ranges with a number from `before` on are newer.
    ReadMaps {
        pid: u32,
        before: u64,
    },
}

impl AdvisorTask {
    /// The process that it is about.
    pub fn pid(&self) -> u32 {
        match *self {
            AdvisorTask::Take(TakeMapping { pid, .. })
            | AdvisorTask::Leave(ReleaseMapping { pid, .. })
            | AdvisorTask::Restore { pid, .. }
            | AdvisorTask::NoteInherited { pid, .. }
            | AdvisorTask::ReadMaps { pid, .. } => pid,
        }
    }

    /// Whether an answer comes to it.
    pub fn has_reply(&self) -> bool {
        !matches!(self, AdvisorTask::Restore { .. } | AdvisorTask::NoteInherited { .. })
    }
}

/// What came of a request.
#[derive(Debug)]
pub enum AdvisorReply {
    Took {
        id: u64,
        pid: u32,
        took: TakeResult,
    },
    /// Whether a mapping has the advice again that it had.
    Released {
        leave: ReleaseMapping,
        stopped_ns: Option<u64>,
    },
    Maps {
        pid: u32,
        before: u64,
        maps: Vec<MappedRange>,
        elapsed_ns: u64,
    },
    /// What a process has mapped cannot be read: it is gone, or refuses it.
    NoMaps {
        pid: u32,
    },
    /// How long it took to read a page of a file, once for each device.
    PageReadTime {
        took_ns: u64,
    },
}

/// What came of taking a mapping.
#[derive(Debug)]
pub enum TakeResult {
    /// It is governed. Its file has `pages` pages.
    Governed { file: Arc<OpenFile>, pages: u64, given: AdviceOrigin },
    /// It cannot be advised now.
    Retry(String),
    /// It is not to be governed, by what it is.
    Ignored(String),
    /// It cannot be governed, since something refuses it.
    Refused(String),
    /// It is not there any more.
    Gone,
}

/// Whose advice a governed mapping has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdviceOrigin {
    /// This governor has advised it RANDOM.
    Governor { stopped_ns: u64 },
    /// It was advised by this governor in the process that forked, or before it was moved.
    Inherited,
    /// The program has advised it RANDOM itself.
    Program,
    /// Nothing is advised, since it is only observed.
    ObserveOnly,
    /// Nothing is advised any more, since the kernel's own readahead costs less.
    Left,
}

impl AdviceOrigin {
    /// Whether the advice is to be restored in the end.
    pub fn is_restored(self) -> bool {
        matches!(self, AdviceOrigin::Governor { .. } | AdviceOrigin::Inherited)
    }
}
