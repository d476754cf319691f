//! Where the time of the threads went.

use filemap_job::thrash::{Course, WaitCourse};

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
    /// `mmap_lock` to write, which another writer has.
    WriteBehindWriter,
    /// `mmap_lock` to write, which a reader has with a window under it.
    WriteBehindWindow,
    /// `mmap_lock` to write, which other readers have, or which is on its way.
    WriteBehindReaders,
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
    pub const ALL: [Cause; 17] = [
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
        Cause::WriteBehindWriter,
        Cause::WriteBehindWindow,
        Cause::WriteBehindReaders,
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
            Cause::WriteBehindWriter => "mmap_write: writer",
            Cause::WriteBehindWindow => "mmap_write: window",
            Cause::WriteBehindReaders => "mmap_write: readers",
            Cause::VmaReaders => "faults in the VMA",
            Cause::Device => "device",
            Cause::RunQueue => "run queue",
            Cause::Idle => "idle",
        }
    }
}

/// Spans of time by cause, as far as they lie in the time that counts: in all, and in its course.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    spans: [Histogram; Cause::ALL.len()],
    course: Course<{ Cause::ALL.len() }>,
}

impl Waits {
    /// No spans yet, of the time from `from_ns` to `to_ns`.
    pub fn new(from_ns: u64, to_ns: u64) -> Waits {
        Waits {
            spans: [Histogram::default(); Cause::ALL.len()],
            course: Course::new(from_ns, to_ns),
        }
    }

    /// Adds a span of `ns` from `from_ns` on.
    pub fn add(&mut self, cause: Cause, from_ns: u64, ns: u64) {
        let (from_ns, to_ns) = self.course.clip(from_ns, from_ns + ns);
        if from_ns < to_ns {
            self.spans[cause as usize].add(to_ns - from_ns);
            self.course.add(cause as usize, from_ns, to_ns);
        }
    }

    /// The spans of one cause.
    pub fn of(&self, cause: Cause) -> &Histogram {
        &self.spans[cause as usize]
    }

    /// Their course until `end_ns`.
    pub fn course(&self, end_ns: u64) -> Option<WaitCourse> {
        self.course.until(end_ns, Cause::ALL.map(Cause::name))
    }
}
