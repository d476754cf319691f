//! What came out of a probe, and what each of its phases cost.

use crate::governor::Governor;
use crate::residency::PageSet;

/// What one phase cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseCost {
    /// Minor faults.
    pub minor: u64,
    /// Major faults.
    pub major: u64,
    /// Bytes fetched from storage on the child's behalf, where the kernel accounts that.
    pub read_bytes: Option<u64>,
    /// How long it took.
    pub elapsed_ns: u64,
    /// Pages of all files in the cache at its end, and evicted since the run began: of a process of
    /// one thread that takes more than one step, where the kernel tells.
    pub left: Option<Left>,
    /// Pages of its file that it dropped from the cache, where it is that kind of step and the
    /// kernel tells.
    pub dropped: Option<u64>,
    /// Its major faults also count pages that it only waited for.
    pub counts_waits: bool,
}

/// What a phase left of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Pages in the cache.
    pub cached: u64,
    /// Pages that reclaim took and that did not come back.
    pub evicted: u64,
}

/// What came out of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Address at which the mapping began.
    pub address: u64,
    /// Whether the child's own memory was locked, so that none of the faults are its own.
    pub locked: bool,
    /// One for each phase of the plan.
    pub phases: Vec<PhaseCost>,
    /// Mapped pages, counted from the beginning of the mapping; empty if not asked for.
    pub mapped: PageSet,
}

/// What came out of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Whether the child's own memory was locked, so that none of the faults are its own.
    pub locked: bool,
    /// Each thread.
    pub threads: Vec<EndedThread>,
    /// Mapped pages, counted from the beginning of the first mapping; empty if not asked for.
    pub mapped: PageSet,
    /// Accesses that a process of one thread had begun 2, 4, 6 and so on seconds after it began:
    /// where it begins with a flush of the statistics of memory cgroups, at each flush.
    pub begun_at_flushes: Vec<u64>,
    /// Bytes fetched from storage by all steps and by a governor, where the kernel accounts that.
    pub read_bytes: Option<u64>,
}

impl Ended {
    /// A process that nobody governed.
    pub(super) fn new(
        locked: bool,
        threads: Vec<EndedThread>,
        mapped: PageSet,
        begun_at_flushes: Vec<u64>,
    ) -> Ended {
        let steps = threads.iter().flat_map(|thread| &thread.steps);
        let read_bytes = steps.map(|step| step.read_bytes).sum();
        Ended { locked, threads, mapped, begun_at_flushes, read_bytes }
    }

    /// The same with what `governor` read, which it then ends. In which step it did so is not
    /// known, so that none says what it read.
    pub(super) fn governed(mut self, governor: Governor) -> Ended {
        let read_bytes = self.read_bytes.zip(governor.read_bytes());
        self.read_bytes = read_bytes.map(|(own, governors)| own + governors);
        governor.end();
        let steps = self.threads.iter_mut().flat_map(|thread| &mut thread.steps);
        steps.for_each(|step| step.read_bytes = None);
        self
    }
}

/// What came out of one thread of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedThread {
    /// From where all threads began to its own end.
    pub elapsed_ns: u64,
    /// What each of its steps cost.
    pub steps: Vec<PhaseCost>,
}
