//! A table of events as CSV.

use std::io;

use filemap_recording::{EVENT_COLUMNS, EventCell, EventRow};

use super::RowSink;
use crate::error::Error;
use crate::output::OutputFile;

/// Writes rows as CSV, with a line of column names first.
pub struct CsvSink(csv::Writer<OutputFile>);

impl CsvSink {
    /// A table that is written to `target`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(target: OutputFile) -> Result<CsvSink, Error> {
        let mut sink = CsvSink(csv::Writer::from_writer(target));
        let written = sink.0.write_record(EVENT_COLUMNS.map(|(name, _)| name));
        written.map_err(|error| sink.failed(error))?;
        Ok(sink)
    }

    fn failed(&self, error: csv::Error) -> Error {
        self.0.get_ref().failed(&io::Error::from(error))
    }
}

impl RowSink for CsvSink {
    fn add(&mut self, row: &EventRow<'_>) -> Result<(), Error> {
        let cells = row.cells().map(|cell| match cell {
            EventCell::Number(number) => number.map_or(String::new(), |number| number.to_string()),
            EventCell::Text(text) => text.unwrap_or_default().to_string(),
        });
        self.0.write_record(&cells).map_err(|error| self.failed(error))
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        self.0.flush().map_err(|error| self.0.get_ref().failed(&error))?;
        let Ok(target) = self.0.into_inner() else { unreachable!("nothing is left to write") };
        target.finish()
    }
}
