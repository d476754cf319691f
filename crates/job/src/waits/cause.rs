//! What threads spend time on.

/// What a thread spends time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cause {
    /// Running, except for reclaim.
    Running,
    /// Direct reclaim: evicting pages to make room.
    Reclaim,
    /// Waiting for a CPU.
    RunQueue,
    /// Waiting for a page to be read.
    Device,
    /// Waiting for memory that is occupied by pages being read.
    Room,
    /// Waiting for `mmap_lock`, for reading.
    MmapRead,
    /// Waiting for `mmap_lock`, for writing.
    MmapWrite,
    /// A writer waiting for faults that hold the VMA lock. No tracepoint shows it.
    VmaFaults,
    /// Throttled for exceeding `memory.high`.
    Throttled,
    /// Waiting for other threads, at a barrier or for a phase.
    Threads,
    /// Sleeping, or waiting for a child.
    Asleep,
}

impl Cause {
    /// All causes, in the order of reports.
    pub const ALL: [Cause; 11] = [
        Cause::Running,
        Cause::Reclaim,
        Cause::RunQueue,
        Cause::Device,
        Cause::Room,
        Cause::MmapRead,
        Cause::MmapWrite,
        Cause::VmaFaults,
        Cause::Throttled,
        Cause::Threads,
        Cause::Asleep,
    ];

    /// Name in records and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Running => "running",
            Cause::Reclaim => "reclaim",
            Cause::RunQueue => "run queue",
            Cause::Device => "device",
            Cause::Room => "room in memory",
            Cause::MmapRead => "mmap_lock to read",
            Cause::MmapWrite => "mmap_lock to write",
            Cause::VmaFaults => "faults in the VMA",
            Cause::Throttled => "above memory.high",
            Cause::Threads => "other threads",
            Cause::Asleep => "asleep",
        }
    }

    /// Whether it is a wait for a lock of the process.
    pub const fn is_lock(self) -> bool {
        matches!(self, Cause::MmapRead | Cause::MmapWrite | Cause::VmaFaults)
    }
}
