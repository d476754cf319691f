//! What a process did.

use rustix::time::{ClockId, clock_gettime};

use crate::mapped_range::MappedRange;

/// Something that a thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<W = EventKind> {
    /// When, in nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// The process, as this process' namespace numbers it.
    pub pid: u32,
    /// The thread that did it; the process itself where that is not known.
    pub tid: u32,
    pub kind: W,
}

/// What a thread can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Something is mapped in place of what was there, or has another protection.
    Map(MappedRange),
    /// A page was touched that the page table had no entry for.
    Fault {
        /// The address. Of [`FaultKind::Seen`] it is that of the page.
        address: u64,
        kind: FaultKind,
    },
    /// The process was made by `parent`, or a thread was where `parent` is the process itself. A
    /// process has the mappings of its parent.
    Fork { parent: u32 },
    /// The process has become another program: nothing that was mapped before is there.
    Exec,
    /// The thread ends; the process does where it is its last.
    Exit,
    /// The kernel had no room for so many records of any process.
    Lost { records: u64 },
}

/// How a fault was served, as far as the way of following tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The page was not in the page cache.
    Major,
    /// It was.
    Minor,
    /// An entry of the page table was found that was not there before: the page was touched, or
    /// fault-around mapped it.
    Scanned,
}

/// The current time of the clock that events have, in nanoseconds.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
