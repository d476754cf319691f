//! The decision log as a stream of JSON lines.

use std::io::{self, BufWriter, Write};

use filemap_core::decision::{Decision, Log};
use filemap_job::{LogLine, TracedLine};
use filemap_kernel::trace::Observation;

use crate::error::Error;
use crate::output::OutputFile;

/// Writes decisions as JSON lines.
pub struct LineLog {
    writer: BufWriter<OutputFile>,
    /// Number of the current access.
    access: u64,
    /// The running thread and its time.
    thread: usize,
    at_ns: u64,
}

impl LineLog {
    /// Creates a log that writes to `target`.
    pub fn new(target: OutputFile) -> Self {
        LineLog {
            writer: BufWriter::with_capacity(1 << 16, target),
            access: 0,
            thread: 0,
            at_ns: 0,
        }
    }

    /// Writes the decisions of a kernel, as shown by its tracepoints.
    ///
    /// # Errors
    /// If a line cannot be written.
    pub fn write_observed(mut self, observed: &Observation) -> Result<(), Error> {
        let lines = observed.decisions.iter();
        for line in lines.filter_map(|decision| TracedLine::new(*decision, observed.shown)) {
            let written = serde_json::to_writer(&mut self.writer, &line).map_err(io::Error::from);
            if let Err(error) = written.and_then(|()| self.writer.write_all(b"\n")) {
                return Err(self.writer.get_ref().failed(&error));
            }
        }
        self.finish()
    }

    /// Completes the log.
    ///
    /// # Errors
    /// If a line could not be written.
    pub fn finish(mut self) -> Result<(), Error> {
        let flushed = self.writer.flush();
        let (target, _) = self.writer.into_parts();
        match flushed {
            Ok(()) => target.finish(),
            Err(error) => Err(target.failed(&error)),
        }
    }

    fn write(&mut self, decision: Decision) -> io::Result<()> {
        let line =
            LogLine { access: self.access, thread: self.thread, at_ns: self.at_ns, decision };
        serde_json::to_writer(&mut self.writer, &line)?;
        self.writer.write_all(b"\n")
    }
}

impl Log for LineLog {
    fn record(&mut self, decision: Decision) {
        if let Err(error) = self.write(decision) {
            // The model, which calls this, cannot return an error, and the log would be incomplete.
            crate::end(&self.writer.get_ref().failed(&error));
        }
    }

    fn access(&mut self, number: u64) {
        self.access = number;
    }

    fn at(&mut self, task: usize, now_ns: u64) {
        (self.thread, self.at_ns) = (task, now_ns);
    }
}
