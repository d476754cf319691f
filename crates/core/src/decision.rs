//! The decision log: what the rules decided, in order.

mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{FileId, Order, PageCount, PageIndex};

/// Why a readahead window was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A fault in a mapping advised HUGEPAGE.
    HugePage,
    /// A fault in a mapping advised SEQUENTIAL that starts or continues a stream.
    SequentialFault,
    /// A fault in a mapping advised SEQUENTIAL that belongs to no stream.
    SequentialSingle,
    /// A fault in an executable mapping.
    Executable,
    /// A fault that reads around its page.
    ReadAround,
    /// A `read(2)` that missed the cache and starts or continues a stream.
    ReadStream,
    /// A `read(2)` that missed the cache and belongs to no stream.
    ReadSingle,
    /// A fault that hit a marked folio.
    AsyncFault,
    /// A `read(2)` that hit a marked folio.
    AsyncRead,
    /// A fault in a mapping advised SEQUENTIAL, of an open file advised RANDOM.
    SequentialForced,
    /// A `read(2)` that missed the cache, of an open file advised RANDOM.
    ReadForced,
    /// The program requested the pages (MADV_WILLNEED, POSIX_FADV_WILLNEED).
    WillNeed,
    /// A governor requested the pages after a major fault.
    Governor,
}

impl Cause {
    /// The name in logs and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::HugePage => "huge-page",
            Cause::SequentialFault => "sequential-fault",
            Cause::SequentialSingle => "sequential-single",
            Cause::Executable => "executable",
            Cause::ReadAround => "read-around",
            Cause::ReadStream => "read-stream",
            Cause::ReadSingle => "read-single",
            Cause::SequentialForced => "sequential-forced",
            Cause::ReadForced => "read-forced",
            Cause::WillNeed => "will-need",
            Cause::Governor => "governor",
            Cause::AsyncFault => "async-fault",
            Cause::AsyncRead => "async-read",
        }
    }

    /// Whether exactly the requested pages are read, in chunks ([`crate::readahead::forced`]).
    pub const fn is_forced(self) -> bool {
        matches!(
            self,
            Cause::SequentialForced | Cause::ReadForced | Cause::WillNeed | Cause::Governor
        )
    }

    /// Whether a hit on a marked folio requested the window.
    pub const fn is_async(self) -> bool {
        matches!(self, Cause::AsyncFault | Cause::AsyncRead)
    }
}

/// A lock that a fault holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lock {
    /// The VMA's own lock, shared.
    Vma,
    /// `mmap_lock`, shared.
    Mmap,
}

impl Lock {
    /// The name in logs and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Lock::Vma => "vma",
            Lock::Mmap => "mmap",
        }
    }
}

/// The readahead state on entry to readahead, before it decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ReadaheadSnapshot {
    /// The page that was accessed.
    pub index: PageIndex,
    /// Requested pages.
    pub req: PageCount,
    /// Folio order of the stream.
    pub order: Order,
    /// Pages of the last window.
    pub size: PageCount,
    /// Pages of the last window after its mark.
    pub async_size: PageCount,
    /// The miss counter.
    pub mmap_miss: u16,
    /// The byte at which the last `read(2)` ended.
    pub previous_end: Option<u64>,
}

/// One decision, a line of a decision log. In JSON, `decision` is its kind and the other keys are
/// its values; indexes and sizes count base pages. Logs made from tracepoints lack values that
/// these do not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "kebab-case")]
pub enum Decision {
    /// Readahead was entered with this state, for a miss of a stream or a hit on a mark
    /// (`page_cache_sync_ra`, `page_cache_async_ra`).
    Entered {
        /// The cause.
        cause: Cause,
        /// The request, and the state.
        #[serde(flatten)]
        found: ReadaheadSnapshot,
    },
    /// A window was requested (`page_cache_ra_order`, or the unbounded calls of a single or a
    /// forced read).
    Readahead {
        /// The cause.
        cause: Cause,
        /// The page that was accessed.
        index: PageIndex,
        /// Requested folio order.
        order: Order,
        /// First page of the window.
        start: PageIndex,
        /// Pages in the window, before it is clipped.
        size: PageCount,
        /// Pages after the mark.
        async_size: PageCount,
        /// The counter after the decision.
        #[serde(default)]
        mmap_miss: u16,
    },
    /// A window, or the rest of one, is laid out in base pages (`page_cache_ra_unbounded`).
    BasePages {
        /// First page.
        start: PageIndex,
        /// Pages, clipped to the end of the file and to the VMA where that bounds them.
        size: PageCount,
        /// Pages after the mark, as requested.
        async_size: PageCount,
    },
    /// A marked folio was hit, and nothing absent was found within a window after it.
    NothingAbsent {
        /// The page that was accessed.
        index: PageIndex,
    },
    /// A miss read no window: readahead is off, or the counter is above its threshold.
    NoReadahead {
        /// The page that was accessed.
        index: PageIndex,
        /// The counter after the decision.
        #[serde(default)]
        mmap_miss: u16,
    },
    /// Folios entered the page cache, one after the other.
    Added {
        /// First page of the first folio.
        start: PageIndex,
        /// Order of each.
        order: Order,
        /// Number of folios.
        folios: u64,
        /// First page of the folio that got the mark.
        #[serde(default)]
        marked: Option<PageIndex>,
    },
    /// Fault-around mapped what it found.
    MapPages {
        /// First page of the window.
        from: PageIndex,
        /// Last page of the window.
        last: PageIndex,
        /// Pages that were not mapped before.
        #[serde(default)]
        mapped: PageCount,
        /// Hits taken from the counter, before it stops at 0.
        #[serde(default)]
        credit: u32,
    },
    /// A folio was mapped by one PMD entry.
    MapHuge {
        /// Its first page.
        start: PageIndex,
    },
    /// A fault looked up its page in the cache.
    Lookup {
        /// The page.
        index: PageIndex,
        /// Whether it was found.
        hit: bool,
        /// Whether this is the retry that may not drop its lock again.
        #[serde(default)]
        tried: bool,
        /// The counter before readahead.
        #[serde(default)]
        mmap_miss: u16,
    },
    /// A fault took a lock.
    Locked {
        /// The lock.
        lock: Lock,
    },
    /// A fault dropped the lock that it held.
    Dropped {
        /// The lock.
        lock: Lock,
    },
    /// A fault or a read waited for a folio's data.
    Waited {
        /// The page.
        index: PageIndex,
    },
    /// A fault was served.
    Served {
        /// The page.
        index: PageIndex,
        /// Whether it counts as major in the process's own accounting.
        #[serde(default)]
        major: bool,
        /// Number of tries.
        #[serde(default)]
        tries: u32,
    },
    /// A fault made a private copy of its page.
    Copied {
        /// The page.
        index: PageIndex,
    },
    /// Pages left the cache.
    Evicted {
        /// First page of a run.
        start: PageIndex,
        /// Pages in the run.
        pages: PageCount,
    },
    /// The following decisions are about this file; initially the first file.
    File {
        /// The file.
        file: FileId,
    },
    /// A fault began, in logs made from tracepoints. The rules record [`Decision::Locked`] and
    /// [`Decision::Served`] instead.
    Faulted {
        /// The page.
        index: PageIndex,
    },
}

/// Where decisions go.
pub trait Log {
    /// Whether recorded decisions are used; if not, work done only for the log can be skipped.
    fn is_kept(&self) -> bool {
        true
    }

    /// Takes the next decision.
    fn record(&mut self, decision: Decision);

    /// Announces that the following decisions are about `file`. A log of several files records
    /// [`Decision::File`] when the file changes.
    fn about(&mut self, _file: FileId) {}

    /// Announces the number of the access, from 0, to which the following decisions belong. It is
    /// not itself a decision and does not affect the log.
    fn access(&mut self, _number: u64) {}

    /// Announces the open file description used by the following decisions. It is not a decision
    /// either.
    fn through(&mut self, _open: u32) {}

    /// Decisions from here on are made for a mapping of the job, by its index, or for an open file
    /// without one. Not a decision either.
    fn mapping(&mut self, _mapping: Option<usize>) {}

    /// A rule consulted or credited the miss counter of the open file at hand. Not a decision:
    /// no tracepoint shows it.
    fn mmap_miss_changed(&mut self, _change: MissChange) {}

    /// Announces the cached file pages of an access when it begins. Accesses to private copies are
    /// not announced.
    fn describe_access(&mut self, _start: PageIndex, _pages: PageCount) {}

    /// Announces the running task and its time, at which the following decisions are made.
    fn at(&mut self, _task: usize, _now_ns: u64) {}

    /// Reports when a task waited, when the wait ends.
    fn waited(&mut self, _task: usize, _wait: TaskWait, _from_ns: u64, _until_ns: u64) {}

    /// Reports what a task did, and when, when it ends.
    fn ended(&mut self, _task: usize, _work: TaskWork, _from_ns: u64, _until_ns: u64) {}

    /// Reports that the number of requests in flight changed. Not in order of time.
    fn requests_changed(&mut self, _at_ns: u64, _change: i64) {}
}

/// What a task did in a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskWork {
    /// A fault.
    Fault {
        /// The file.
        file: FileId,
        /// The page.
        index: PageIndex,
        /// Whether it counts as major in the process's own accounting.
        major: bool,
    },
    /// A `read(2)`.
    Read {
        /// The file.
        file: FileId,
        /// First byte.
        offset_bytes: u64,
        /// Length.
        length_bytes: u64,
    },
    /// A step of the task, by its index.
    Step(usize),
}

/// What a rule did with the miss counter of an open file. `before` equals `after` where the
/// counter is at a bound, or where a series decides by something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissChange {
    /// The cause.
    pub cause: MissChangeCause,
    /// The counter before.
    pub before: u16,
    /// The counter after.
    pub after: u16,
}

/// Why the miss counter was consulted or credited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissChangeCause {
    /// A fault missed the page cache, in a mapping whose misses count.
    Miss {
        /// Whether it still reads a window.
        reads_window: bool,
    },
    /// A fault found its page cached.
    Hit,
    /// Fault-around found pages cached.
    Around {
        /// Hits credited, before the counter stops at 0.
        hits: u32,
    },
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskWait {
    /// A page of a file that is being read.
    Page(FileId, PageIndex),
    /// Memory, which is full of folios being read.
    Room,
    /// A CPU.
    Cpu,
    /// A step of another task that has to finish first.
    Step,
    /// `mmap_lock` for reading.
    MmapRead,
    /// `mmap_lock` for writing.
    MmapWrite,
    /// Faults in a VMA that it changes.
    VmaFaults,
}

/// Drops every decision.
impl Log for () {
    fn is_kept(&self) -> bool {
        false
    }

    fn record(&mut self, _: Decision) {}
}

/// Keeps every decision.
impl Log for Vec<Decision> {
    fn record(&mut self, decision: Decision) {
        self.push(decision);
    }
}

/// Joins evictions of adjacent pages, so that a log does not depend on how a cache stores them.
#[derive(Debug, Default)]
pub struct EvictionRun(Option<(FileId, PageIndex, PageCount)>);

impl EvictionRun {
    /// Adds an eviction. A run that it does not continue is sent to `log`.
    #[inline]
    pub fn push<L: Log>(&mut self, file: FileId, start: PageIndex, pages: PageCount, log: &mut L) {
        if !log.is_kept() {
            return;
        }
        match &mut self.0 {
            Some((run_file, first, length)) if *run_file == file && *first + *length == start => {
                *length += pages;
            }
            _ => {
                self.flush(log);
                self.0 = Some((file, start, pages));
            }
        }
    }

    /// Sends the last run to `log`.
    pub fn flush(&mut self, log: &mut impl Log) {
        if let Some((file, start, pages)) = self.0.take() {
            log.about(file);
            log.record(Decision::Evicted { start, pages });
        }
    }
}
