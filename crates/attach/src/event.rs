//! Events of followed processes.

use rustix::time::{ClockId, clock_gettime};

use crate::mapped_range::MappedRange;

/// One event of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<W = EventKind> {
    /// Time of the event, in nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Process ID in the PID namespace of this process.
    pub pid: u32,
    /// Thread ID; equal to `pid` where the source does not report threads.
    pub tid: u32,
    pub kind: W,
}

/// Kinds of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A range was mapped, replacing any previous mapping there, or its protection changed.
    Map(MappedRange),
    /// A page without a page table entry was touched.
    Fault {
        /// Faulting address; for [`FaultKind::Scanned`], the start of the page.
        address: u64,
        kind: FaultKind,
    },
    /// `parent` forked this process, which inherits its mappings. If `parent` is the process
    /// itself, it created a thread.
    Fork { parent: u32 },
    /// The process called execve(2): all previous mappings are gone.
    Exec,
    /// The thread exited; for the last thread of a process, so did the process.
    Exit,
    /// Number of records the kernel dropped for lack of buffer space. They may concern any followed
    /// process.
    Lost { records: u64 },
}

/// How a fault was served, as far as the [`FollowMethod`](crate::FollowMethod) can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Major fault: the page was not in the page cache.
    Major,
    /// Minor fault: the page was in the page cache.
    Minor,
    /// A page table scan found a new entry: the page was touched, or fault-around mapped it.
    Scanned,
}

/// Current CLOCK_MONOTONIC time in nanoseconds, the clock of [`Event::at_ns`].
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
