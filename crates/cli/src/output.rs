//! Where reports go.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};

use filemap_report::{Format, Report};

use crate::args::OutputFlags;
use crate::error::{Error, reason};

/// The places that a report goes to, open before the jobs are run: what cannot be written is
/// known at once.
pub struct Output {
    format: Format,
    json: Option<Target>,
    /// Something else than the report goes to stdout.
    stdout_taken: bool,
}

impl Output {
    /// Opens what `flags` name. `log` is the path of a decision log, if there is one.
    ///
    /// # Errors
    /// When a file cannot be written to, and when two things are to go to stdout.
    pub fn open(flags: &OutputFlags, log: Option<&str>) -> Result<Self, Error> {
        let json = flags.json.as_deref();
        if json == Some("-") && log == Some("-") {
            let message = "--json - and --log - cannot both go to stdout; give one a file";
            return Err(Error::Usage(message.to_string()));
        }
        Ok(Output {
            format: flags.format,
            stdout_taken: json == Some("-") || log == Some("-"),
            json: json.map(Target::open).transpose()?,
        })
    }

    /// Writes `report`.
    ///
    /// # Errors
    /// When it cannot be written. A pipe that was closed is none.
    pub fn write(self, report: &Report) -> Result<(), Error> {
        if let Some(target) = self.json {
            let (path, mut writer) = target.writer()?;
            let written = writer.write_all(report.render(Format::Json).as_bytes());
            written.and_then(|()| writer.flush()).or_else(|error| unless_closed(&path, &error))?;
        }
        if self.stdout_taken {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(report.render(self.format).as_bytes());
        written.and_then(|()| stdout.flush()).or_else(|error| unless_closed("stdout", &error))
    }
}

/// A file, or stdout for `-`.
pub struct Target {
    path: String,
    file: Option<File>,
}

impl Target {
    /// Opens `path` and leaves what is in it.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub fn open(path: &str) -> Result<Self, Error> {
        if path == "-" {
            return Ok(Target { path: "stdout".to_string(), file: None });
        }
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let failed =
            |error: io::Error| Error::Open { path: path.to_string(), reason: reason(&error) };
        Ok(Target { path: path.to_string(), file: Some(file.map_err(failed)?) })
    }

    /// Its name, and where to write; what was in the file is gone.
    pub fn writer(self) -> Result<(String, Box<dyn Write>), Error> {
        let Some(file) = self.file else { return Ok((self.path, Box::new(io::stdout()))) };
        if file.metadata().is_ok_and(|data| data.is_file()) {
            file.set_len(0).map_err(|error| failed(&self.path, &error))?;
        }
        Ok((self.path, Box::new(file)))
    }
}

/// An error of writing to `path`, unless its reader has left.
pub fn unless_closed(path: &str, error: &io::Error) -> Result<(), Error> {
    if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(failed(path, error)) }
}

fn failed(path: &str, error: &io::Error) -> Error {
    Error::Write { path: path.to_string(), reason: reason(error) }
}
