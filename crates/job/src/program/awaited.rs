//! The locks that threads of a process wait for.

/// A lock that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// `mmap_lock`, to share it.
    MmapRead,
    /// `mmap_lock`, to have it alone.
    MmapWrite,
    /// Faults inside of a VMA, which a writer waits for. No tracepoint of the kernel tells it.
    VmaFaults,
}

impl Awaited {
    /// Every one, in the order of reports.
    pub const ALL: [Awaited; 3] = [Awaited::MmapRead, Awaited::MmapWrite, Awaited::VmaFaults];

    /// The name in records and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Awaited::MmapRead => "mmap_lock to read",
            Awaited::MmapWrite => "mmap_lock to write",
            Awaited::VmaFaults => "faults in the VMA",
        }
    }
}
