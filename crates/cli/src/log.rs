//! The decision log as a stream of lines.

use std::io::{self, BufWriter, Write};

use filemap_core::decision::{Decision, Log};
use filemap_report::decisions::Line;

use crate::error::Error;
use crate::output::Target;

/// Writes decisions as lines of JSON as they come.
pub struct LineLog(BufWriter<Target>);

impl LineLog {
    /// A log into `target`.
    pub fn new(target: Target) -> Self {
        LineLog(BufWriter::with_capacity(1 << 16, target))
    }

    /// Ends the log.
    ///
    /// # Errors
    /// When a line could not be written.
    pub fn finish(mut self) -> Result<(), Error> {
        let flushed = self.0.flush();
        let (target, _) = self.0.into_parts();
        match flushed {
            Ok(()) => target.finish(),
            Err(error) => Err(target.failed(&error)),
        }
    }

    fn write(&mut self, decision: Decision) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, &Line::from(decision))?;
        self.0.write_all(b"\n")
    }
}

impl Log for LineLog {
    fn record(&mut self, decision: Decision) {
        if let Err(error) = self.write(decision) {
            // The rules that call this cannot be stopped, and what is missing stays missing.
            crate::end(&self.0.get_ref().failed(&error));
        }
    }
}
