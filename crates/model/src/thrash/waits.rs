//! Where the time of the threads went.

pub use filemap_job::thrash::Histogram;

/// What a thread does or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cause {
    /// Its own accesses and faults, mapping and unmapping.
    Work,
    /// Adding the pages of a window, and filling them.
    Fill,
    /// Reclaim for a charge above `max`.
    Reclaim,
    /// Repaying inside a charge.
    RepayInside,
    /// Repaying on the way back to user mode.
    RepayOnReturn,
    /// Asleep, as repaying was in vain.
    Throttled,
    /// Spinning for the lists' lock.
    ListLock,
    /// `mmap_lock` to read, which a writer has.
    BehindWriter,
    /// `mmap_lock` to read, behind a writer that waits for a reader with a window under it.
    BehindWindow,
    /// `mmap_lock` to read, behind a writer that waits for other readers, or is on its way.
    BehindReaders,
    /// `mmap_lock` to write.
    Write,
    /// Faults inside of a VMA that is written to.
    VmaReaders,
    /// Data from the device.
    Device,
    /// A CPU.
    RunQueue,
    /// A writer's time between two calls, or a stagger at the beginning.
    Idle,
}

impl Cause {
    /// Every cause, in the order of reports.
    pub const ALL: [Cause; 15] = [
        Cause::Work,
        Cause::Fill,
        Cause::Reclaim,
        Cause::RepayInside,
        Cause::RepayOnReturn,
        Cause::Throttled,
        Cause::ListLock,
        Cause::BehindWriter,
        Cause::BehindWindow,
        Cause::BehindReaders,
        Cause::Write,
        Cause::VmaReaders,
        Cause::Device,
        Cause::RunQueue,
        Cause::Idle,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Work => "work",
            Cause::Fill => "fill windows",
            Cause::Reclaim => "reclaim for max",
            Cause::RepayInside => "repay in charge",
            Cause::RepayOnReturn => "repay on return",
            Cause::Throttled => "throttled",
            Cause::ListLock => "list lock",
            Cause::BehindWriter => "mmap_lock: writer",
            Cause::BehindWindow => "mmap_lock: window",
            Cause::BehindReaders => "mmap_lock: readers",
            Cause::Write => "mmap_lock to write",
            Cause::VmaReaders => "faults in the VMA",
            Cause::Device => "device",
            Cause::RunQueue => "run queue",
            Cause::Idle => "idle",
        }
    }
}

/// Spans of time by cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits([Histogram; Cause::ALL.len()]);

impl Default for Waits {
    fn default() -> Waits {
        Waits([Histogram::default(); Cause::ALL.len()])
    }
}

impl Waits {
    /// Adds a span.
    pub fn add(&mut self, cause: Cause, ns: u64) {
        self.0[cause as usize].add(ns);
    }

    /// The spans of one cause.
    pub fn of(&self, cause: Cause) -> &Histogram {
        &self.0[cause as usize]
    }
}
