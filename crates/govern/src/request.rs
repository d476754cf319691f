//! Requests of the governor and the replies to them.

use std::sync::Arc;

use filemap_attach::{FileId, MappedRange};
use filemap_policy::PageRange;

use crate::decision::FileDecision;
use crate::file::OpenFile;

/// Request to govern a mapping: open its file and advise it MADV_RANDOM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeMapping {
    pub id: u64,
    pub pid: u32,
    /// The thread to hold: the one that mapped it, or one that has just run.
    pub tid: u32,
    pub range: MappedRange,
    /// If the kernel shows it as MADV_RANDOM, that may be this governor's advice rather than the
    /// program's.
    pub may_be_inherited: bool,
    /// Number of this attempt, from 1.
    pub tries: u32,
    /// The thread has just had a major fault in the mapping.
    pub has_faulted: bool,
    /// Open the file, but do not advise: the kernel's own readahead is cheaper for this file.
    pub prefers_kernel: bool,
    /// How its file is governed, if that is decided.
    pub decision: Option<Arc<FileDecision>>,
}

/// Request to restore the advice of a mapping for which the kernel's own readahead is cheaper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseMapping {
    pub id: u64,
    pub pid: u32,
    /// The thread to hold, which has just had a major fault in the mapping.
    pub tid: u32,
    pub range: MappedRange,
}

/// A request of the governor.
#[derive(Clone, Debug)]
pub enum Request {
    Task(AdvisorTask),
    Read {
        id: FileId,
        file: Arc<OpenFile>,
        pages: PageRange,
        is_for_later: bool,
    },
    /// Drop the queued reads of a file.
    CancelReads {
        id: FileId,
    },
    /// Report touches of a range; `Unwatch` ends that.
    Watch {
        pid: u32,
        range: MappedRange,
    },
    Unwatch {
        pid: u32,
        range: MappedRange,
    },
}

/// A request that may block, executed by an advisor thread.
#[derive(Clone, Debug)]
pub enum AdvisorTask {
    Take(TakeMapping),
    Leave(ReleaseMapping),
    /// Restore the advice of a range that is no longer governed.
    Restore {
        pid: u32,
        range: MappedRange,
    },
    /// Add mappings that a forked process has inherited with their advice to the journal.
    NoteInherited {
        pid: u32,
        ranges: Vec<MappedRange>,
    },
    /// Look whether the program advises a range MADV_RANDOM itself.
    Check {
        id: u64,
        pid: u32,
        range: MappedRange,
    },
    /// Read `/proc/PID/maps`. Ranges with IDs above `before` were added after this request.
    ReadMaps {
        pid: u32,
        before: u64,
    },
}

impl AdvisorTask {
    /// The PID of the process.
    pub fn pid(&self) -> u32 {
        match *self {
            AdvisorTask::Take(TakeMapping { pid, .. })
            | AdvisorTask::Leave(ReleaseMapping { pid, .. })
            | AdvisorTask::Restore { pid, .. }
            | AdvisorTask::NoteInherited { pid, .. }
            | AdvisorTask::Check { pid, .. }
            | AdvisorTask::ReadMaps { pid, .. } => pid,
        }
    }

    /// Whether the task is answered with an [`AdvisorReply`].
    pub fn has_reply(&self) -> bool {
        !matches!(self, AdvisorTask::Restore { .. } | AdvisorTask::NoteInherited { .. })
    }
}

/// Reply to an [`AdvisorTask`].
#[derive(Debug)]
pub enum AdvisorReply {
    Took {
        id: u64,
        pid: u32,
        took: TakeResult,
    },
    /// Reply to [`AdvisorTask::Leave`]; without `stopped_ns` the advice was not restored.
    Released {
        leave: ReleaseMapping,
        stopped_ns: Option<u64>,
    },
    /// Reply to [`AdvisorTask::Check`].
    Checked {
        id: u64,
        pid: u32,
        is_random: bool,
    },
    Maps {
        pid: u32,
        before: u64,
        maps: Vec<MappedRange>,
        elapsed_ns: u64,
    },
    /// `/proc/PID/maps` cannot be read: the process has exited, or access is denied.
    NoMaps {
        pid: u32,
    },
    /// Measured time to read one uncached page; unsolicited, once or a few times per device.
    PageReadTime {
        took_ns: u64,
    },
}

/// Result of [`AdvisorTask::Take`].
#[derive(Debug)]
pub enum TakeResult {
    /// Governed; its file has `pages` pages.
    Governed { file: Arc<OpenFile>, pages: u64, origin: AdviceOrigin, decision: Arc<FileDecision> },
    /// Cannot be advised now, and why.
    Retry(String),
    /// Not eligible, such as a file on tmpfs, and why.
    Ignored(String),
    /// Refused for good by the kernel or the process, and why. Users are warned.
    Refused(String),
    /// No longer mapped.
    Gone,
}

/// Who set the advice of a governed mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdviceOrigin {
    /// This governor, with MADV_RANDOM.
    Governor { stopped_ns: u64 },
    /// This governor, in the parent before a fork, or before the mapping moved.
    Inherited,
    /// The program itself, with MADV_RANDOM.
    Program,
    /// Nobody: the governor only observes.
    ObserveOnly,
    /// Nobody: the plan for the file needs no advice.
    Watched,
    /// Nobody: the mapping is left to the kernel's own readahead, which is cheaper.
    Left,
}

impl AdviceOrigin {
    /// Whether the advice has to be restored when the governor ends.
    pub fn is_restored(self) -> bool {
        matches!(self, AdviceOrigin::Governor { .. } | AdviceOrigin::Inherited)
    }
}
