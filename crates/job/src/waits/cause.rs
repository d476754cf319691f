//! What threads do, and what they wait for.

/// What the time of a thread goes into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cause {
    /// It runs, but for reclaim.
    Running,
    /// It evicts pages to make room for others.
    Reclaim,
    /// It has no CPU.
    RunQueue,
    /// A page is being read.
    Device,
    /// Memory is full of what is being read.
    Room,
    /// `mmap_lock`, to share it.
    MmapRead,
    /// `mmap_lock`, to have it alone.
    MmapWrite,
    /// Faults inside of a VMA, which a writer waits for. No tracepoint of the kernel tells it.
    VmaFaults,
    /// It sleeps as it was above `memory.high`.
    Throttled,
    /// Steps of other threads, or a barrier.
    Threads,
    /// It sleeps as it was told to, or waits for a child.
    Asleep,
}

impl Cause {
    /// Every one, in the order of reports.
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

    /// The name in records and reports.
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

    /// Whether it is a lock of the process.
    pub const fn is_lock(self) -> bool {
        matches!(self, Cause::MmapRead | Cause::MmapWrite | Cause::VmaFaults)
    }
}
