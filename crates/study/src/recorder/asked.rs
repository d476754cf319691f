//! A recording that is asked for.

use std::ffi::OsString;
use std::time::Duration;

use filemap_attach::{MOST_OPEN, Source};
use filemap_recording::{Header, Mode};

use super::wanted::WantedFiles;
use crate::error::Error;

/// The clock of recordings.
const CLOCK: &str = "user time of the thread, looked at every 50 ms";

/// A recording that is asked for.
#[allow(missing_docs, reason = "their names say it")]
pub struct Asked {
    pub wanted: WantedFiles,
    /// Each change of page is recorded, not first touches only.
    pub changes: bool,
    /// It ends after so long at most.
    pub duration: Option<Duration>,
}

impl Asked {
    /// What a recording of the program with these `words`, where they are known, says of itself.
    pub(super) fn header(&self, words: Vec<OsString>) -> Header {
        let system = rustix::system::uname();
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let mode = if self.changes { Mode::Changes } else { Mode::FirstTouches };
        Header {
            open_pages: if self.changes { MOST_OPEN } else { 0 },
            command: words,
            page_size: rustix::param::page_size() as u64,
            clock: CLOCK.to_string(),
            kernel: text(system.release()),
            machine: text(system.machine()),
            ..Header::new(mode)
        }
    }

    /// Refuses to record changes where the kernel does not tell of all touches.
    pub(super) fn check(&self, source: &Source) -> Result<(), Error> {
        if self.changes && !source.tells_calls() {
            return Err(Error::CannotRun(
                "--changes needs the tracepoints of page faults, which root of the machine has on \
                 x86-64 with tracefs; leave it out for first touches"
                    .to_string(),
            ));
        }
        Ok(())
    }
}
