//! Where the time of the threads went.

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

/// Spans of time in classes, each twice as long as the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    classes: [u64; 64],
    /// How many.
    pub count: u64,
    /// All of them together.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { classes: [0; 64], count: 0, sum_ns: 0, max_ns: 0 }
    }
}

impl Histogram {
    fn add(&mut self, ns: u64) {
        if ns == 0 {
            return;
        }
        self.classes[ns.ilog2() as usize] += 1;
        self.count += 1;
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }

    /// The span that `percent` of a hundred do not exceed: the end of its class, or the longest.
    pub fn percentile_ns(&self, percent: u64) -> u64 {
        let wanted = (self.count * percent).div_ceil(100);
        let mut seen = 0;
        for (class, count) in self.classes.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return ((1u64 << class) - 1 + (1 << class)).min(self.max_ns);
            }
        }
        0
    }
}
