//! `--export`: the events of a recording as a table for other tools, and a run as a timeline.

mod csv;
#[cfg(feature = "parquet")]
mod parquet;

use std::io::{BufWriter, Write};

use filemap_job::Job;
use filemap_model::{Profile, trace};
use filemap_recording::{EventRow, for_each_row};
use filemap_study::timeline::Timeline;

use crate::error::Error;
use crate::output::OutputFile;
use crate::progress;
use crate::recording;

/// The format of a table of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    Csv,
    Parquet,
}

impl TableFormat {
    /// The format of an export to `path`, by its extension; CSV for stdout.
    ///
    /// # Errors
    /// If the extension is of neither format, or of one that this program was built without.
    pub fn of_path(path: &str) -> Result<TableFormat, Error> {
        match extension(path) {
            Some("csv") => Ok(TableFormat::Csv),
            None if path == "-" => Ok(TableFormat::Csv),
            Some("parquet") if cfg!(feature = "parquet") => Ok(TableFormat::Parquet),
            Some("parquet") => Err(Error::CannotRun(
                "this filemap was built without Parquet; build it with --features parquet, as \
                 packages are, or give a name that ends in .csv"
                    .to_string(),
            )),
            _ => Err(Error::Usage(format!(
                "--export '{path}' has no known format; give a name that ends in .csv or .parquet"
            ))),
        }
    }
}

/// The extension of `path`.
pub fn extension(path: &str) -> Option<&str> {
    std::path::Path::new(path).extension()?.to_str()
}

/// Takes the rows of a table.
trait RowSink {
    /// Adds a row.
    fn add(&mut self, row: &EventRow<'_>) -> Result<(), Error>;

    /// Completes the output.
    fn finish(self: Box<Self>) -> Result<(), Error>;
}

/// Writes the events of the recording at `path` to `target`.
///
/// # Errors
/// If the recording cannot be read, or the table cannot be written.
pub fn write_events(path: &str, format: TableFormat, target: OutputFile) -> Result<(), Error> {
    let mut reader = recording::open(path)?;
    let mut sink: Box<dyn RowSink> = match format {
        TableFormat::Csv => Box::new(csv::CsvSink::new(target)?),
        #[cfg(feature = "parquet")]
        TableFormat::Parquet => Box::new(parquet::ParquetSink::new(target)?),
        #[cfg(not(feature = "parquet"))]
        TableFormat::Parquet => unreachable!("it is refused before"),
    };
    for_each_row(&mut reader, |row| sink.add(row))?;
    sink.finish()?;
    if let Some(truncated) = reader.truncated() {
        progress::print_line(&format!("{path} is cut off at byte {}", truncated.at));
    }
    let lost = reader.totals().lost;
    if lost > 0 {
        progress::print_line(&format!("{path} lacks {lost} events, which were lost"));
    }
    Ok(())
}

/// Checks that `path` is a name for a timeline.
///
/// # Errors
/// If it has another extension.
pub fn check_timeline(path: &str) -> Result<(), Error> {
    if path == "-" || extension(path) == Some("json") {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "--export '{path}' has no known format; a run is exported as Chrome trace JSON: give a \
         name that ends in .json"
    )))
}

/// Runs `job` in the model, and writes its timeline to `target`.
///
/// # Errors
/// Errors of the model, or if the timeline cannot be written.
pub fn write_timeline(job: &Job, profile: &Profile, target: OutputFile) -> Result<(), Error> {
    let mut timeline = Timeline::new(job, BufWriter::with_capacity(1 << 16, target));
    trace(job, profile, &mut timeline)?;
    let (mut writer, written) = timeline.finish();
    let written = written.and_then(|()| writer.flush());
    let (target, _) = writer.into_parts();
    match written {
        Ok(()) => target.finish(),
        Err(error) => Err(target.failed(&error)),
    }
}
