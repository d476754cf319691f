//! What a program did.

use std::path::PathBuf;

/// Something that a thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The thread, as an index: the first [`EventKind::Thread`] of a recording is 0. Of
    /// [`EventKind::Process`] and [`EventKind::Thread`] it means nothing.
    pub thread: u32,
    /// Time since what this thread did before, without what that itself took, in nanoseconds. A
    /// recording keeps it within 25 %, and the sum over many.
    pub wait_ns: u64,
    /// What it did.
    pub kind: EventKind,
}

/// Consecutive pages of a mapping, counted from its first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// The first of them.
    pub first: u64,
    /// How many.
    pub pages: u64,
}

/// What a thread can do. Processes, threads, files, open file descriptions and mappings are named
/// by index, each kind by itself: the first of a kind that a recording has is 0. An event that
/// names one comes after the one that introduces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A process is seen first.
    Process {
        /// Its number.
        pid: u32,
        /// The process that made it, which a `fork` gives; `exec` begins a new one.
        parent: Option<u32>,
        /// Its program.
        program: PathBuf,
    },
    /// A thread is seen first.
    Thread {
        /// Its process.
        process: u32,
        /// Its number.
        tid: u32,
    },
    /// A program or library is seen in a process, to tell the callers of its mappings by. Only
    /// recordings of earlier versions have it.
    Module {
        /// The process.
        process: u32,
        /// Its path.
        path: PathBuf,
        /// Where it was loaded: what is added to the addresses in its headers.
        address: u64,
        /// How much of the address space it takes from there, in bytes.
        length_bytes: u64,
        /// What its linker called the build (`NT_GNU_BUILD_ID`); empty where it has none, or the
        /// file was gone.
        build_id: Vec<u8>,
        /// When the file was changed last, in nanoseconds since 1970; 0 where that is not known.
        modified_ns: u64,
    },
    /// A file is seen first.
    File {
        /// Its path.
        path: PathBuf,
        /// Its size in bytes then.
        size_bytes: u64,
        /// The device that it lies on.
        device: u64,
        /// Its number there; 0 where it is not known.
        inode: u64,
    },
    /// An open file description is seen first.
    Open {
        /// The file.
        file: u32,
    },
    /// A mapping is made.
    Map {
        /// The open file description that it is made from.
        open: u32,
        /// Its address.
        address: u64,
        /// Its length in bytes: not 0.
        length_bytes: u64,
        /// Where in the file it begins, in bytes.
        offset_bytes: u64,
        /// `PROT_` bits.
        protection: u32,
        /// `MAP_` bits.
        flags: u32,
        /// Who called, from the inside to the outside: at most [`MAX_CALLERS`] addresses, each
        /// inside of the instruction that called. Only recordings of earlier versions have any.
        callers: Vec<u64>,
    },
    /// A mapping, or a part of it, is taken away.
    Unmap {
        /// The mapping.
        mapping: u32,
        /// The part; `None` is all of it.
        part: Option<Pages>,
    },
    /// The protection of a part of a mapping changes.
    Protect {
        /// The mapping.
        mapping: u32,
        /// The part.
        pages: Pages,
        /// `PROT_` bits.
        protection: u32,
    },
    /// A mapping moves, or has another length.
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
        pages: Pages,
        /// The number of the advice.
        advice: u32,
    },
    /// `posix_fadvise(2)`.
    Fadvise {
        /// The open file description.
        open: u32,
        /// Where the part begins, in bytes.
        offset_bytes: u64,
        /// How long it is, in bytes; 0 is up to the end of the file.
        length_bytes: u64,
        /// The number of the advice.
        advice: u32,
    },
    /// `readahead(2)`.
    Readahead {
        /// The open file description.
        open: u32,
        /// Where the part begins, in bytes.
        offset_bytes: u64,
        /// How long it is, in bytes.
        length_bytes: u64,
    },
    /// `read(2)` and its kin: what was read.
    Read {
        /// The open file description.
        open: u32,
        /// Where it begins, in bytes.
        offset_bytes: u64,
        /// How long it is, in bytes.
        length_bytes: u64,
    },
    /// A file has another size.
    Truncate {
        /// The file.
        file: u32,
        /// Its new size in bytes.
        size_bytes: u64,
    },
    /// A page is touched: for the first time, or after another page, as the recording's mode says.
    Touch {
        /// The mapping.
        mapping: u32,
        /// The page of the mapping, from 0.
        page: u64,
        /// Whether it is written to.
        is_write: bool,
    },
    /// An open file description is closed for good.
    Close {
        /// The open file description.
        open: u32,
    },
    /// A process ends.
    Exit {
        /// The process.
        process: u32,
    },
    /// Events were lost here.
    Lost {
        /// How many.
        events: u64,
    },
}

/// Most callers of a mapping that are kept.
pub const MAX_CALLERS: usize = 64;
