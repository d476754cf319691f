//! Reads input files: job files, accesses files, and ELF programs.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::time::Duration;

use filemap_job::{Elf, JobFlags, JobSpec, KeyLines, format_size};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::{Error, reason};

/// Maximum size of a job file in bytes. A program of 10,000 files with 100 listed pages each takes
/// 10 MiB; parsing 7 MiB took 290 MiB of memory.
pub const MAX_JOB_BYTES: u64 = 16 << 20;

/// Maximum size of an accesses file, in bytes.
const MAX_ACCESSES_BYTES: u64 = 1 << 28;

/// Parses the job file without tables at `path`, and returns the lines of its keys too.
///
/// # Errors
/// When it cannot be read, or has tables or unknown keys.
pub fn job_file(path: &str) -> Result<(JobFlags, KeyLines), Error> {
    let text = read("job file", path, MAX_JOB_BYTES)?;
    let flags = JobFlags::from_toml(&text)
        .map_err(|error| Error::InFile { path: path.to_string(), error: Box::new(error.into()) })?;
    Ok((flags, KeyLines::from_toml(&text)))
}

/// Loads the accesses files that `spec` names into it, unless they are loaded already.
pub fn accesses_files(spec: &mut JobSpec) -> Result<(), Error> {
    for (path, text) in spec.accesses_files().filter(|(_, text)| text.is_none()) {
        *text = Some(read("accesses file", path, MAX_ACCESSES_BYTES)?);
    }
    Ok(())
}

/// Maximum size of a program or shared library, in bytes.
const MAX_ELF_BYTES: u64 = 1 << 30;

/// The ELF headers of the program or library at `path`.
pub fn segments(path: &str) -> Result<Elf, Error> {
    regular("program", path)?;
    let bytes = read_bytes("program", path, MAX_ELF_BYTES)?;
    Elf::parse(&bytes)
        .map_err(|error| Error::InFile { path: path.to_string(), error: Box::new(error.into()) })
}

/// The release of the running kernel, such as `6.18.3-amd64`.
pub fn host_release() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(text.trim().to_string())
}

/// Opens the regular file at `path`, and returns it with its size in bytes. `label` names its kind
/// in errors.
///
/// # Errors
/// When the file is missing, unreadable or not a regular file.
pub fn regular(label: &'static str, path: &str) -> Result<(File, u64), Error> {
    let failed = |reason| Error::Read { what: label, path: path.to_string(), reason };
    let file = open(path).map_err(|error| failed(reason(&error)))?;
    let data = file.metadata().map_err(|error| failed(reason(&error)))?;
    match data.len() {
        _ if data.is_dir() => Err(failed("it is a directory".to_string())),
        _ if !data.is_file() => Err(failed("it is no regular file".to_string())),
        bytes => Ok((file, bytes)),
    }
}

/// Reads the text file at `path`, of at most `most` bytes. `label` names its kind in errors.
///
/// # Errors
/// When the file is unreadable, longer than `most`, or not UTF-8.
pub fn read(label: &'static str, path: &str, most: u64) -> Result<String, Error> {
    let reason = "it is no text (UTF-8)".to_string();
    let bytes = read_bytes(label, path, most)?;
    String::from_utf8(bytes).map_err(|_| Error::Read {
        what: label,
        path: path.to_string(),
        reason,
    })
}

/// Reads the file at `path`, of at most `most` bytes. `label` names its kind in errors.
fn read_bytes(label: &'static str, path: &str, most: u64) -> Result<Vec<u8>, Error> {
    let failed = |reason: String| Error::Read { what: label, path: path.to_string(), reason };
    let file = open(path).map_err(|error| failed(reason(&error)))?;
    let too_long = || failed(format!("it is longer than {}", format_size(most)));
    match file.metadata() {
        Ok(data) if data.is_dir() => return Err(failed("it is a directory".to_string())),
        Ok(data) if data.len() > most => return Err(too_long()),
        _ => {}
    }
    let mut bytes = Vec::new();
    // Reads one byte more than allowed to detect oversized input without a known size, such as a
    // pipe.
    let read = PipeReader::new(file).take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(reason(&error)))?;
    if bytes.len() as u64 > most {
        return Err(too_long());
    }
    Ok(bytes)
}

/// Opens the file at `path` for reading, without blocking on a FIFO that has no writer.
pub fn open(path: &str) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    File::options().read(true).custom_flags(flags).open(path)
}

/// Reads a file that may be a pipe. A writer may take any time; only a FIFO without a writer times
/// out.
struct PipeReader {
    file: File,
    /// The pipe has had a writer.
    had_writer: bool,
}

/// Time to wait for the first writer of a FIFO.
const WITHOUT_WRITER: Duration = Duration::from_secs(3);

impl PipeReader {
    fn new(file: File) -> Self {
        let is_fifo = file.metadata().is_ok_and(|data| data.file_type().is_fifo());
        PipeReader { file, had_writer: !is_fifo }
    }

    /// Waits until the file is readable or its last writer has closed it, at most for `limit`.
    fn wait(&self, limit: Option<Timespec>) -> io::Result<bool> {
        let mut files = [PollFd::new(&self.file, PollFlags::IN)];
        loop {
            match poll(&mut files, limit.as_ref()) {
                Err(Errno::INTR) => {}
                ready => return Ok(ready? > 0),
            }
        }
    }
}

impl Read for PipeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.had_writer = true;
                    self.wait(None)?;
                }
                Ok(0) if !self.had_writer && !buffer.is_empty() => {
                    let limit = Timespec::try_from(WITHOUT_WRITER).expect("it is seconds");
                    if !self.wait(Some(limit))? {
                        return Err(io::Error::other(
                            "it is a named pipe into which nobody writes",
                        ));
                    }
                    self.had_writer = true;
                }
                other => {
                    self.had_writer |= other.as_ref().is_ok_and(|bytes| *bytes > 0);
                    return other;
                }
            }
        }
    }
}
