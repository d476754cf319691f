//! Records what the threads of a run wait for.

use crate::Error;
use crate::journal::Journal;
use crate::trace::{TraceFs, TracedWaits, WaitTrace};

/// What records the waits of threads.
pub(super) struct WaitTracer {
    // Undone from the first to the last: without a tracefs of its own there is no way to the trace.
    trace: WaitTrace,
    _tracefs: TraceFs,
}

impl WaitTracer {
    /// For the threads that the processes `pids` have now, where this kernel and this user allow
    /// it. What it changes is written down in `journal`.
    pub(super) fn open(journal: &Journal, pids: &[u32]) -> Option<WaitTracer> {
        let tracefs = TraceFs::open(journal).ok()?;
        let trace = WaitTrace::create(&tracefs, journal, pids).ok()?;
        Some(WaitTracer { trace, _tracefs: tracefs })
    }

    /// From now on.
    pub(super) fn start(&self) -> Result<(), Error> {
        self.trace.start()
    }

    /// What was recorded up to `ended_ns` by `CLOCK_MONOTONIC`, which is over: threads that end
    /// wait for locks as well.
    pub(super) fn finish(&self, ended_ns: u64) -> Result<TracedWaits, Error> {
        self.trace.stop()?;
        self.trace.read(ended_ns)
    }
}
