//! A single output.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_attach::program::inherited;
use rustix::fs::OFlags;
use rustix::io::FdFlags;

use super::inputs::is_stdout;
use super::path::ResolvedPath;
use super::replacement::Replacement;
use crate::error::{Error, reason};

/// Maximum time to wait for a reader of a FIFO.
const WITHOUT_READER: Duration = Duration::from_secs(3);

/// Polling interval while waiting for a reader.
const PAUSE: Duration = Duration::from_millis(10);

/// A file, or stdout for `-`. A file keeps its old contents until [`OutputFile::finish`].
pub struct OutputFile {
    path: String,
    sink: Sink,
}

enum Sink {
    Stdout(io::Stdout),
    /// A pipe, a device, or a file inherited from the parent process.
    Stream(File),
    Replacement(Box<Replacement>),
}

impl OutputFile {
    /// Opens `path`, keeping its contents for now.
    ///
    /// # Errors
    /// If it cannot be written to.
    pub fn open(path: &str) -> Result<Self, Error> {
        if is_stdout(path) {
            return OutputFile::stdout();
        }
        OutputFile::opened(path, Replacement::new)
    }

    /// [`OutputFile::open`] for an output that is written over a long time: until finished it is named
    /// `path.part`, which is left behind if this process is killed.
    ///
    /// # Errors
    /// If it cannot be written to, or `path.part` exists.
    pub fn open_part(path: &str) -> Result<Self, Error> {
        OutputFile::opened(path, Replacement::new_partial)
    }

    fn opened(path: &str, make: Make) -> Result<Self, Error> {
        let failed = |reason| Error::Open { path: path.to_string(), reason };
        let sink = open(Path::new(path), make).map_err(|error| failed(reason(&error)))?;
        Ok(OutputFile { path: path.to_string(), sink })
    }

    /// Stdout.
    ///
    /// # Errors
    /// If this process was started without stdout.
    pub fn stdout() -> Result<Self, Error> {
        let path = "stdout".to_string();
        if !inherited::was_open(libc::STDOUT_FILENO) {
            return Err(Error::Write { path, reason: "it is closed".to_string() });
        }
        Ok(OutputFile { path, sink: Sink::Stdout(io::stdout()) })
    }

    /// Whether it is stdout.
    pub fn is_stdout(&self) -> bool {
        matches!(self.sink, Sink::Stdout(_))
    }

    /// Writes `bytes` as the complete contents.
    ///
    /// # Errors
    /// If they cannot be written; a file is then unchanged.
    pub fn write(mut self, bytes: &[u8]) -> Result<(), Error> {
        match self.write_all(bytes) {
            Ok(()) => self.finish(),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Completes the output: a file gets its new contents.
    ///
    /// # Errors
    /// If they cannot be written; a file is then unchanged.
    pub fn finish(self) -> Result<(), Error> {
        let OutputFile { path, sink } = self;
        let finished = match sink {
            Sink::Stdout(mut stdout) => {
                return stdout.flush().map_err(|error| failed_on_stdout(&error));
            }
            Sink::Stream(_) => Ok(()),
            Sink::Replacement(replacement) => replacement.commit(),
        };
        finished.map_err(|error| Error::Write { path, reason: reason(&error) })
    }

    /// The error for `error` while writing to this output.
    pub fn failed(&self, error: &io::Error) -> Error {
        match self.sink {
            Sink::Stdout(_) => failed_on_stdout(error),
            _ => Error::Write { path: self.path.clone(), reason: reason(error) },
        }
    }
}

/// The error for `error` while writing to stdout.
pub fn failed_on_stdout(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Error::ReaderLeft,
        _ => Error::Write { path: "stdout".to_string(), reason: reason(error) },
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Stdout(stdout) => stdout.write(bytes),
            Sink::Stream(file) => file.write(bytes),
            Sink::Replacement(replacement) => replacement.file().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Stdout(stdout) => stdout.flush(),
            Sink::Stream(_) | Sink::Replacement(_) => Ok(()),
        }
    }
}

/// Creates a replacement for a path and the metadata of the existing file.
type Make = fn(PathBuf, Option<Metadata>) -> io::Result<Replacement>;

fn open(path: &Path, make: Make) -> io::Result<Sink> {
    let replacement = |path, old| Ok(Sink::Replacement(Box::new(make(path, old)?)));
    let entry = match ResolvedPath::resolve(path)? {
        ResolvedPath::Descriptor(number) => return inherited(number).map(Sink::Stream),
        ResolvedPath::Entry(entry) => entry,
    };
    let existing = match fs::metadata(&entry) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        other => Some(other?),
    };
    let Some(data) = existing else {
        // The path led through the descriptor of another process to a file without a name.
        if fs::metadata(path).is_ok() {
            return Err(io::Error::other("it has no name"));
        }
        return replacement(entry, None);
    };
    let same = fs::metadata(path).is_ok_and(|at| (at.dev(), at.ino()) == (data.dev(), data.ino()));
    let kind = data.file_type();
    match () {
        () if !same => Err(io::Error::other("its name now refers to another file")),
        () if kind.is_file() => {
            // Checks write permission: a read-only file is not replaced.
            OpenOptions::new().write(true).open(&entry)?;
            replacement(entry, Some(data))
        }
        () if kind.is_fifo() || kind.is_char_device() => stream(entry).map(Sink::Stream),
        () if kind.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        () if kind.is_block_device() => Err(io::Error::other("it is a disk")),
        () => Err(io::Error::other("it is a socket")),
    }
}

/// Opens a device, or a FIFO that has a reader or gets one soon.
fn stream(path: PathBuf) -> io::Result<File> {
    // Without `O_NONBLOCK`, opening a FIFO without a reader blocks.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let deadline = Instant::now() + WITHOUT_READER;
    let file = loop {
        match OpenOptions::new().write(true).custom_flags(flags).open(&path) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                if Instant::now() > deadline {
                    return Err(io::Error::other("nobody reads from it"));
                }
                sleep(PAUSE);
            }
            opened => break opened?,
        }
    };
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

/// The file that this process inherited as descriptor `number`. Output is appended to its contents,
/// as for stdout.
fn inherited(number: RawFd) -> io::Result<File> {
    let missing = || io::Error::from_raw_os_error(libc::EBADF);
    // SAFETY: the descriptor is only queried and duplicated, and both fail if it is not open.
    let file = unsafe { BorrowedFd::borrow_raw(number) };
    // Close-on-exec descriptors were opened by this process and not inherited.
    if rustix::io::fcntl_getfd(file)?.contains(FdFlags::CLOEXEC) {
        return Err(missing());
    }
    let mode = rustix::fs::fcntl_getfl(file)? & OFlags::RWMODE;
    if mode == OFlags::RDONLY {
        return Err(io::Error::other("it is open for reading only"));
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(file, 0)?.into())
}
