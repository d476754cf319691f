//! Jobs under a trace of a kernel that was booted for them.

use std::path::Path;

use serde_json::{Value, json};

use super::Runnable;
use crate::Error;
use crate::journal::Journal;
use crate::probe::Process;
use crate::trace::Observer;

/// RAM for each event of a trace, in bytes: its room in the buffer, twice, and what is kept of it.
const RAM_PER_EVENT: u64 = 320;

/// How a job is to be observed on a kernel that is booted for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Whether each access waits until nothing is being read.
    pub settled: bool,
    /// About how many events there will be.
    pub expected: u64,
    /// Whether a series without a switch is taken to be one that the kernel was built with.
    pub may_lack_switches: bool,
}

impl Asked {
    /// As it is sent to the guest.
    pub(super) fn sent(self) -> Value {
        let Asked { settled, expected, may_lack_switches } = self;
        json!({
            "settled": settled,
            "expected": expected,
            "may_lack_switches": may_lack_switches,
        })
    }

    /// What was sent.
    pub(super) fn received(sent: &Value) -> Option<Self> {
        Some(Asked {
            settled: sent["settled"].as_bool()?,
            expected: sent["expected"].as_u64()?,
            may_lack_switches: sent["may_lack_switches"].as_bool()?,
        })
    }

    /// RAM that observing takes in the guest, in bytes.
    pub(super) fn ram_bytes(self) -> u64 {
        self.expected.saturating_mul(RAM_PER_EVENT).saturating_add(64 << 20)
    }
}

/// Observes `job` on the kernel that this is, with its files in `directory`; returns the bytes of
/// its recording.
pub(super) fn observe<W: Runnable<Process = Process>>(
    job: &W,
    journal: &Journal,
    directory: &Path,
    asked: Asked,
) -> Result<Vec<u8>, Error> {
    let mut observer = Observer::in_directory(journal, directory)?;
    let subject = observer.subject(job).map_err(|error| job.needs().told(error))?;
    let recording = match asked.settled {
        true => observer.settled_recording(job, &subject, asked.expected)?,
        false => observer.recording(job, &subject, asked.expected)?,
    };
    Ok(recording.encode())
}
