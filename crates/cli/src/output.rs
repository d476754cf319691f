//! Where reports go.

use std::fs::{self, File, OpenOptions};
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
    /// Opens what `flags` name. `other` is what else the command writes, by its name and path.
    ///
    /// # Errors
    /// When a file cannot be written to, and when two things are to go to stdout.
    pub fn open(flags: &OutputFlags, other: Option<(&str, &str)>) -> Result<Self, Error> {
        let json = flags.json.as_deref();
        let other = other.filter(|(_, path)| *path == "-");
        if let (Some("-"), Some((name, _))) = (json, other) {
            return Err(Error::Usage(format!(
                "--json - and {name} - cannot both go to stdout; give one a file"
            )));
        }
        Ok(Output {
            format: flags.format,
            stdout_taken: json == Some("-") || other.is_some(),
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

/// A file, or stdout for `-`. A file that was not there before goes again unless it is written.
pub struct Target {
    path: String,
    file: Option<File>,
    is_new: bool,
}

impl Target {
    /// Opens `path` and leaves what is in it.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub fn open(path: &str) -> Result<Self, Error> {
        if path == "-" {
            return Ok(Target { path: "stdout".to_string(), file: None, is_new: false });
        }
        let (is_new, file) = match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(file) => (true, Ok(file)),
            Err(_) => {
                (false, OpenOptions::new().write(true).create(true).truncate(false).open(path))
            }
        };
        let failed =
            |error: io::Error| Error::Open { path: path.to_string(), reason: reason(&error) };
        Ok(Target { path: path.to_string(), file: Some(file.map_err(failed)?), is_new })
    }

    /// Its name, and where to write; what was in the file is gone.
    pub fn writer(mut self) -> Result<(String, Box<dyn Write>), Error> {
        self.is_new = false;
        let path = std::mem::take(&mut self.path);
        let Some(file) = self.file.take() else { return Ok((path, Box::new(io::stdout()))) };
        if file.metadata().is_ok_and(|data| data.is_file()) {
            file.set_len(0).map_err(|error| failed(&path, &error))?;
        }
        Ok((path, Box::new(file)))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.is_new {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// An error of writing to `path`, unless its reader has left.
pub fn unless_closed(path: &str, error: &io::Error) -> Result<(), Error> {
    if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(failed(path, error)) }
}

fn failed(path: &str, error: &io::Error) -> Error {
    Error::Write { path: path.to_string(), reason: reason(error) }
}
