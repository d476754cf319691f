//! What a step costs the thread that takes it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use super::PhaseCost;
use crate::Error;
use crate::procstat::{Faults, read_bytes};

/// Counts what a step of this thread costs.
pub(super) struct StepMeter {
    io: Option<File>,
    text: [u8; 512],
}

impl StepMeter {
    /// A meter of the thread that calls this.
    pub(super) fn open() -> Self {
        StepMeter { io: File::open("/proc/thread-self/io").ok(), text: [0; 512] }
    }

    /// What `work` costs.
    pub(super) fn measure(
        &mut self,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<PhaseCost, Error> {
        let bytes_before = self.read_bytes();
        let faults_before = Faults::current_thread();
        let start = Instant::now();
        work()?;
        let elapsed = start.elapsed();
        let faults = Faults::current_thread() - faults_before;
        let read_bytes = self.read_bytes().zip(bytes_before).map(|(after, before)| after - before);
        Ok(PhaseCost {
            accesses: 0,
            minor: faults.minor,
            major: faults.major,
            read_bytes,
            elapsed_ns: elapsed.as_nanos() as u64,
            cache: None,
            dropped: None,
            counts_waits: false,
        })
    }

    /// Bytes that were fetched from storage for this thread so far.
    pub(super) fn read_bytes(&mut self) -> Option<u64> {
        let length = self.io.as_ref()?.read_at(&mut self.text, 0).ok()?;
        read_bytes(std::str::from_utf8(&self.text[..length]).ok()?)
    }
}
