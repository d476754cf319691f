//! Records what the threads of a run wait for.

use super::stage::Stage;
use crate::Error;
use crate::trace::{Inode, TraceFs, TracedWaits, WaitTrace};

/// What records the waits of threads.
pub(super) struct Tracer {
    // Undone from the first to the last: without a tracefs of its own there is no way to the trace.
    trace: WaitTrace,
    _tracefs: TraceFs,
}

impl Tracer {
    /// For the threads that the processes `pids` have now, where this kernel and this user allow
    /// it.
    ///
    /// # Errors
    /// When the files of the run cannot be looked at.
    pub(super) fn of(stage: &Stage, pids: &[u32]) -> Result<Option<Tracer>, Error> {
        let files = stage.files.files.iter().map(|file| file.file.metadata());
        let files = files.map(|metadata| metadata.map(|metadata| Inode::of(&metadata)));
        let files: Vec<Inode> = files
            .collect::<Result<_, _>>()
            .map_err(|error| Error::call("look at the files of a run", error))?;
        let Ok(tracefs) = TraceFs::open(stage.journal()) else { return Ok(None) };
        let trace = WaitTrace::create(&tracefs, stage.journal(), pids, &files).ok();
        Ok(trace.map(|trace| Tracer { trace, _tracefs: tracefs }))
    }

    /// From now on.
    pub(super) fn start(&self) -> Result<(), Error> {
        self.trace.start()
    }

    /// What was recorded up to `ended_ns` by `CLOCK_MONOTONIC`, which is over: threads that end
    /// wait for locks as well.
    pub(super) fn ended(&self, ended_ns: u64) -> Result<TracedWaits, Error> {
        self.trace.stop()?;
        self.trace.read(ended_ns)
    }
}
