//! The decision log as a stream of lines.

use std::io::{self, BufWriter, ErrorKind, Write};

use filemap_core::decision::{Decision, Log};
use filemap_report::decisions::NumberedLine;

use crate::error::Error;
use crate::output::{Target, unless_closed};

/// Writes decisions as lines of JSON as they come.
pub struct LineLog {
    path: String,
    writer: BufWriter<Box<dyn Write>>,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
    /// Nothing but the log is wanted.
    alone: bool,
    /// The access at hand.
    access: u64,
}

impl LineLog {
    /// A log into `target`. If it is the only thing that is wanted (`alone`), the command ends
    /// when its reader leaves.
    pub fn new(target: Target, alone: bool) -> Result<Self, Error> {
        let (path, writer) = target.writer()?;
        let writer = BufWriter::with_capacity(1 << 16, writer);
        Ok(LineLog { path, writer, failed: None, alone, access: 0 })
    }

    /// Ends the log.
    ///
    /// # Errors
    /// When a line could not be written. A pipe that was closed is none.
    pub fn finish(mut self) -> Result<(), Error> {
        let flushed = self.writer.flush();
        self.failed.map_or(flushed, Err).or_else(|error| unless_closed(&self.path, &error))
    }

    fn write(&mut self, decision: Decision) -> io::Result<()> {
        serde_json::to_writer(&mut self.writer, &NumberedLine::new(self.access, decision))?;
        self.writer.write_all(b"\n")
    }
}

impl Log for LineLog {
    fn record(&mut self, decision: Decision) {
        if self.failed.is_some() {
            return;
        }
        let Err(error) = self.write(decision) else { return };
        if error.kind() == ErrorKind::BrokenPipe && self.alone {
            // The rules that call this cannot be stopped.
            std::process::exit(0);
        }
        self.failed = Some(error);
    }

    fn access(&mut self, number: u64) {
        self.access = number;
    }
}
