//! The events of a recording.

use std::path::PathBuf;

/// An action of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Index of the thread: the first [`EventKind::Thread`] of a recording is 0. Meaningless for
    /// [`EventKind::Process`], [`EventKind::Thread`], [`EventKind::Memory`],
    /// [`EventKind::Cached`], [`EventKind::Lost`] and [`EventKind::Gap`].
    pub thread: u32,
    /// Time since the end of the previous event of this thread, in nanoseconds. Stored with an
    /// error of at most 25 %; errors do not accumulate in the sum over many events.
    pub wait_ns: u64,
    /// What happened.
    pub kind: EventKind,
}

/// Consecutive pages of a mapping, numbered from its first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingPages {
    /// First page.
    pub first: u64,
    /// Their number.
    pub pages: u64,
}

/// Kinds of events. Processes, threads, files, open file descriptions and mappings are referred to
/// by index, numbered from 0 separately for each kind in the order of the events that introduce
/// them. A reference always follows its introduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Introduces a process.
    Process {
        /// Its number.
        pid: u32,
        /// The process that created it by `fork`, or that called `exec`, which starts a new process
        /// in the recording.
        parent: Option<u32>,
        /// Path of its program.
        program: PathBuf,
    },
    /// Introduces a thread.
    Thread {
        /// Its process.
        process: u32,
        /// Its number.
        tid: u32,
    },
    /// Introduces a file.
    File {
        /// Its path.
        path: PathBuf,
        /// Its size at that time, in bytes.
        size_bytes: u64,
        /// Its device (`st_dev`).
        device: u64,
        /// Its inode number; 0 if unknown.
        inode: u64,
    },
    /// Introduces an open file description.
    Open {
        /// The file.
        file: u32,
    },
    /// Introduces a mapping: `mmap(2)`, or inheritance by `fork`.
    Map {
        /// The mapped open file description.
        open: u32,
        /// Its address.
        address: u64,
        /// Its length in bytes: not 0.
        length_bytes: u64,
        /// File offset, in bytes.
        offset_bytes: u64,
        /// `PROT_` bits.
        protection: u32,
        /// `MAP_` bits.
        flags: u32,
    },
    /// `munmap(2)`, or another mapping on top: removes a mapping or a part of it.
    Unmap {
        /// The mapping.
        mapping: u32,
        /// The part; `None` for the whole mapping.
        part: Option<MappingPages>,
    },
    /// `mprotect(2)`.
    Protect {
        /// The mapping.
        mapping: u32,
        /// The part.
        pages: MappingPages,
        /// `PROT_` bits.
        protection: u32,
    },
    /// `mremap(2)`: a mapping moves or changes its length.
    Move {
        /// The mapping.
        mapping: u32,
        /// Its new address.
        to: u64,
        /// Its new length in bytes: not 0.
        length_bytes: u64,
    },
    /// `madvise(2)`.
    Madvise {
        /// The mapping.
        mapping: u32,
        /// The part.
        pages: MappingPages,
        /// The constant of the advice.
        advice: u32,
    },
    /// `posix_fadvise(2)`.
    Fadvise {
        /// The open file description.
        open: u32,
        /// Offset of the range, in bytes.
        offset_bytes: u64,
        /// Length of the range, in bytes; 0 extends to the end of the file.
        length_bytes: u64,
        /// The constant of the advice.
        advice: u32,
    },
    /// `readahead(2)`.
    Readahead {
        /// The open file description.
        open: u32,
        /// Offset of the range, in bytes.
        offset_bytes: u64,
        /// Length in bytes.
        length_bytes: u64,
    },
    /// `read(2)`, `pread(2)` and the like.
    Read {
        /// The open file description.
        open: u32,
        /// Offset, in bytes.
        offset_bytes: u64,
        /// Length in bytes.
        length_bytes: u64,
    },
    /// The size of a file has changed.
    Truncate {
        /// The file.
        file: u32,
        /// Its new size in bytes.
        size_bytes: u64,
    },
    /// An access to a page through a mapping. Which accesses are recorded depends on
    /// [`crate::RecordingMode`].
    Touch {
        /// The mapping.
        mapping: u32,
        /// The page, numbered from 0 within the mapping.
        page: u64,
        /// Whether the access is a write.
        is_write: bool,
    },
    /// The last reference to an open file description is closed.
    Close {
        /// The open file description.
        open: u32,
    },
    /// A process exits.
    Exit {
        /// The process.
        process: u32,
    },
    /// The memory of a process besides the pages of files, at this point.
    Memory {
        /// The process.
        process: u32,
        /// Anonymous and shared memory (`RssAnon`, `RssShmem`), in bytes.
        anonymous_bytes: u64,
        /// Maximum resident set so far, pages of files included (`VmHWM`), in bytes.
        peak_bytes: u64,
    },
    /// Pages of a file that were in the page cache when the recorder first saw it. Other pages of a
    /// file with such an event were not.
    Cached {
        /// The file.
        file: u32,
        /// First page.
        first: u64,
        /// Number of pages; 0 if none was cached.
        pages: u64,
    },
    /// Pages that were mapped together with a touched one before the recorder could have each
    /// fault alone: the thread may have touched any of them by now. They are counted in the gap
    /// [`GapKind::TouchedPages`].
    Unseen {
        /// The mapping.
        mapping: u32,
        /// The pages.
        pages: MappingPages,
    },
    /// Events were lost at this point.
    Lost {
        /// Their number.
        events: u64,
    },
    /// Something that the recorder knows to be missing from the whole recording.
    Gap {
        /// Kind of the missing events.
        kind: GapKind,
        /// Their minimum number, of [`GapKind::TouchedPages`] the maximum: never 0.
        count: u64,
    },
}

impl EventKind {
    /// Whether a thread did it; otherwise [`Event::thread`] is meaningless.
    pub(crate) fn is_of_thread(&self) -> bool {
        !matches!(
            self,
            EventKind::Process { .. }
                | EventKind::Thread { .. }
                | EventKind::Memory { .. }
                | EventKind::Cached { .. }
                | EventKind::Lost { .. }
                | EventKind::Gap { .. }
        )
    }
}

/// What a recorder could not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapKind {
    /// Calls of `posix_fadvise(2)` or `readahead(2)` on files that were closed before they could be
    /// identified.
    Advice,
    /// Pages read from files that were closed before they could be identified.
    ReadPages,
    /// Pages that were mapped together with others, so that their first touch was no fault.
    TouchedPages,
    /// All system calls: reads, advice, `munmap(2)` and `mremap(2)`, which the event source does
    /// not report. The count is 1.
    SystemCalls,
    /// Pages that were locked in memory, as by `mlock(2)`, so that their touches were no faults.
    LockedPages,
    /// A kind of a later version.
    Unknown(u32),
}
