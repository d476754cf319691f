//! A single output, and the atomic replacement of its contents.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use filemap_attach::program::inherited;
use rustix::io::Errno;
use tempfile::{Builder, TempPath};

use crate::error::{Error, reason};

/// Mode of a new file, before the umask.
const NEW_MODE: u32 = 0o666;

/// Mode bits that the new file inherits. Writing to a file clears the others.
const MODE_BITS: u32 = 0o777;

/// Suffix of incomplete files.
const PART: &str = ".part";

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
            OutputFile::stdout()
        } else {
            OutputFile::opened(path, create_temporary)
        }
    }

    /// [`OutputFile::open`] for an output that is written over a long time: until finished it is
    /// named `path.part`, which is left behind if this process is killed.
    ///
    /// # Errors
    /// If it cannot be written to, or `path.part` exists.
    pub fn open_part(path: &str) -> Result<Self, Error> {
        OutputFile::opened(path, create_part)
    }

    fn opened(path: &str, create: Create) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::Open { path: path.into(), reason: reason(&error) };
        Ok(OutputFile { path: path.to_string(), sink: open(path, create).map_err(failed)? })
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
        ErrorKind::BrokenPipe => Error::ReaderLeft,
        _ => Error::Write { path: "stdout".to_string(), reason: reason(error) },
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Stdout(stdout) => stdout.write(bytes),
            Sink::Stream(file) => file.write(bytes),
            Sink::Replacement(replacement) => replacement.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Stdout(stdout) => stdout.flush(),
            Sink::Stream(_) | Sink::Replacement(_) => Ok(()),
        }
    }
}

/// Whether `path` refers to stdout.
pub fn is_stdout(path: &str) -> bool {
    path == "-" || descriptor(path) == Some(libc::STDOUT_FILENO)
}

/// The file descriptor of this process that `path` refers to.
fn descriptor(path: &str) -> Option<i32> {
    match path {
        "/dev/stdin" => Some(libc::STDIN_FILENO),
        "/dev/stdout" => Some(libc::STDOUT_FILENO),
        "/dev/stderr" => Some(libc::STDERR_FILENO),
        path => {
            let number = path.strip_prefix("/dev/fd/").or(path.strip_prefix("/proc/self/fd/"))?;
            number.parse().ok().filter(|number| *number >= 0)
        }
    }
}

/// Creates the file for the new contents of a path.
type Create = fn(&Path) -> io::Result<(File, TempPath)>;

fn open(path: &str, create: Create) -> io::Result<Sink> {
    if let Some(number) = descriptor(path) {
        // SAFETY: the descriptor is only duplicated, which fails if it is not open.
        let file = unsafe { BorrowedFd::borrow_raw(number) };
        // The duplicate appends to label was written there, as stdout does.
        return Ok(Sink::Stream(rustix::io::fcntl_dupfd_cloexec(file, 0)?.into()));
    }
    let (path, old) = match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => (new_path(Path::new(path))?, None),
        found => {
            let found = found?;
            let old = fs::metadata(&found)?;
            (found, Some(old))
        }
    };
    match old.as_ref().map(Metadata::file_type) {
        Some(kind) if kind.is_fifo() || kind.is_char_device() => {
            return Ok(Sink::Stream(OpenOptions::new().write(true).open(path)?));
        }
        Some(kind) if kind.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Some(kind) if !kind.is_file() => return Err(io::Error::other("it is no regular file")),
        // Checks write permission: a read-only file is not replaced.
        Some(_) => drop(OpenOptions::new().write(true).open(&path)?),
        None => {}
    }
    let (file, temporary) = create(&path)?;
    Ok(Sink::Replacement(Box::new(Replacement { path, old, file, temporary })))
}

/// The absolute path of a file that does not exist yet.
fn new_path(path: &Path) -> io::Result<PathBuf> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let is_directory = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    let name = path.file_name().filter(|_| !is_directory).ok_or(Errno::NOENT)?;
    let path = fs::canonicalize(parent.unwrap_or(Path::new(".")))?.join(name);
    match fs::symlink_metadata(&path) {
        Ok(_) => Err(io::Error::other("it is a link to a missing file")),
        Err(_) => Ok(path),
    }
}

/// New contents of a file, in the same directory. Discarded unless placed.
struct Replacement {
    path: PathBuf,
    old: Option<Metadata>,
    file: File,
    temporary: TempPath,
}

impl Replacement {
    /// Replaces the old contents with the new ones, after syncing them to disk.
    ///
    /// # Errors
    /// If that fails; the old contents are unchanged.
    fn commit(self) -> io::Result<()> {
        if let Some(old) = &self.old {
            // Only root may change the owner.
            let _ = fchown(&self.file, Some(old.uid()), Some(old.gid()));
            self.file.set_permissions(Permissions::from_mode(old.mode() & MODE_BITS))?;
        }
        self.file.sync_all()?;
        Ok(self.temporary.persist(&self.path)?)
    }
}

/// Temporary names that this process has created.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Creates a file with an unused name in the directory of `path`.
fn create_temporary(path: &Path) -> io::Result<(File, TempPath)> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut temporary = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner);
    let made = Builder::new().prefix(".filemap-").suffix(".tmp").make_in(directory, create_new)?;
    temporary.push(made.path().to_path_buf());
    Ok(made.into_parts())
}

/// Creates `path.part`.
fn create_part(path: &Path) -> io::Result<(File, TempPath)> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(PART);
    let part = path.with_file_name(name);
    let file = create_new(&part).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => io::Error::other(format!(
            "'{}' exists, from a command that is running or was killed; use it, or remove it",
            part.display()
        )),
        _ => error,
    })?;
    Ok((file, TempPath::try_from_path(part)?))
}

fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(NEW_MODE).open(path)
}

/// Removes all temporary names before the process exits without running destructors. The lock is
/// kept, so no more names are created.
pub fn abandon() {
    let temporary = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner);
    temporary.iter().for_each(|path| drop(fs::remove_file(path)));
    std::mem::forget(temporary);
}
