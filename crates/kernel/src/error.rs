//! What can go wrong on a real kernel.

use std::io;
use std::path::{Path, PathBuf};

use crate::image::Incident;

/// Why something could not be done here. Each message is one line and names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Only root may do this.
    #[error("{what} needs root: run it as root, or leave out what needs root")]
    NeedsRoot {
        /// The action.
        what: &'static str,
    },
    /// The kernel or the machine lacks something.
    #[error("{what} is not available here: {remedy}")]
    Unavailable {
        /// The missing thing.
        what: String,
        /// What to install, enable or do instead.
        remedy: String,
    },
    /// A signal ends the process: nothing is begun any more.
    #[error("a signal ended this")]
    ShuttingDown,
    /// A system call on a path failed.
    #[error("cannot {action} '{}': {source}", path.display())]
    Os {
        /// The action, as a verb phrase.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A system call that concerns no path failed.
    #[error("cannot {action}: {source}")]
    Call {
        /// The action, as a verb phrase.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The trace is not complete.
    #[error("the trace lost {lost} events in {buffer_kib} KiB per CPU: use fewer accesses")]
    LostEvents {
        /// Events that were overwritten or dropped.
        lost: u64,
        /// Size of the buffer.
        buffer_kib: u64,
    },
    /// A line of the trace is not as this program knows it.
    #[error(
        "cannot read trace event '{line}': this kernel writes it in an unknown format, report it"
    )]
    TraceFormat {
        /// The line.
        line: String,
    },
    /// Pages of a file would not leave the page cache.
    #[error(
        "'{}' keeps {pages} pages in the page cache ({dirty} dirty, {writeback} in writeback): \
         end the programs that map, lock or write it",
        path.display()
    )]
    StillCached {
        /// The file.
        path: PathBuf,
        /// Pages that remain.
        pages: u64,
        /// Of these, dirty.
        dirty: u64,
        /// Of these, being written.
        writeback: u64,
    },
    /// There is no place for a journal where there should be one.
    #[error(
        "there can be no journal in '{}': {reason}; name a directory in FILEMAP_STATE, by its \
         whole path, in which you can write",
        path.display()
    )]
    JournalDirectory {
        /// Journal directory.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A journal or its directory belongs to another user.
    #[error(
        "the journal '{}' belongs to another user, or others can write to it: \
         remove it, or name another directory in FILEMAP_STATE",
        path.display()
    )]
    JournalOwner {
        /// Journal directory.
        path: PathBuf,
    },
    /// Others take the pages of a file while it is watched.
    #[error(
        "something else removed pages of '{}' from the page cache in {runs} runs: stop what \
         reclaims memory (such as DAMON), or use fewer accesses",
        path.display()
    )]
    Disturbed {
        /// The file.
        path: PathBuf,
        /// Runs that were tried.
        runs: u32,
    },
    /// A tool that makes a filesystem failed.
    #[error("{tool} on '{}' failed: {message}", path.display())]
    Tool {
        /// Its name.
        tool: &'static str,
        /// The device or file.
        path: PathBuf,
        /// The first line that it printed.
        message: String,
    },
    /// A program that was run failed.
    #[error("{program} failed: {message}; run it by hand to see why, or do without it")]
    Program {
        /// Its name.
        program: &'static str,
        /// How it ended, or why its output is invalid.
        message: String,
    },
    /// The disk has no room for what a run writes.
    #[error(
        "no room for {bytes} bytes in '{}': {available_bytes} bytes are available there, beside \
         a reserve that stays free; name another directory in TMPDIR, or give {remedy}",
        path.display()
    )]
    NoSpace {
        /// The directory.
        path: PathBuf,
        /// Bytes that the run writes.
        bytes: u64,
        /// What may be written there.
        available_bytes: u64,
        /// What to give that takes less.
        remedy: &'static str,
    },
    /// A file that others use is in the page cache, and was to be dropped from it.
    #[error(
        "{cached} of the {pages} pages of '{}' are in the page cache, and programs may need them \
         there: give --cold to drop them, or use a copy of the file",
        path.display()
    )]
    InPageCache {
        /// The file.
        path: PathBuf,
        /// Pages that are cached.
        cached: u64,
        /// Pages of the file.
        pages: u64,
    },
    /// A file does not have, or no longer has, the size that the job says.
    #[error(
        "'{}' has {bytes} bytes, not {expected}: do not change it during a run, and give its \
         actual size or no --file-size",
        path.display()
    )]
    SizeChanged {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The size that it should have.
        expected: u64,
    },
    /// A kernel image gave no record.
    #[error(transparent)]
    Image(#[from] crate::image::Error),
    /// One of several jobs failed that a machine was booted for.
    #[error("job {number} of {jobs} in this boot ({name}): {source}")]
    InBatch {
        /// Its number, from 1.
        number: usize,
        /// How many the machine had.
        jobs: usize,
        /// The job.
        name: String,
        /// Why.
        source: Box<Error>,
    },
    /// A job failed on a kernel that was booted for it.
    #[error("{}: {source}", image.display())]
    OnImage {
        /// The kernel, as it was given.
        image: PathBuf,
        /// Why.
        source: Box<Error>,
    },
    /// A probe was asked for something that cannot be run.
    #[error("the probe cannot run this: {0}")]
    InvalidProcess(String),
    /// The probe's child reported that it could not go on.
    #[error("the probe stopped: {message}")]
    Child {
        /// Its message.
        message: String,
    },
    /// The kernel killed the probe's child because its memory cgroup had no page left.
    #[error(
        "out of memory in {limit_bytes} bytes: raise the memory limit (memory_max), or hold and \
         write fewer pages"
    )]
    OutOfMemory {
        /// The limit.
        limit_bytes: u64,
    },
    /// The system refuses the probe's child memory, or room for addresses.
    #[error(
        "the probe stopped: {message}; raise the limit of this shell (ulimit -v), or map and \
         hold less"
    )]
    Starved {
        /// Its message.
        message: String,
    },
    /// A probe's child touched a page beyond the end of a file.
    #[error(
        "the probe got SIGBUS at page {page} of its mapping {mapping}: map or access less of the \
         file"
    )]
    Bus {
        /// The mapping, by its number from 0.
        mapping: usize,
        /// Its page, by its number from 0.
        page: u64,
    },
    /// A program touched a page beyond the end of a file.
    #[error(
        "{step}: page {page} of mapping '{mapping}' lies beyond the last page of file '{file}', \
         and the program got SIGBUS for touching it: shorten the mapping, or access less of it"
    )]
    BeyondFile {
        /// The thread and the phase.
        step: String,
        /// The page of the mapping.
        page: u64,
        /// The mapping.
        mapping: String,
        /// The file.
        file: String,
    },
    /// The probe's child was killed.
    #[error("the probe was killed by signal {signal}: {remedy}")]
    ChildKilled {
        /// Signal number.
        signal: i32,
        /// What to look at.
        remedy: &'static str,
    },
}

impl Error {
    /// Whether the machine lacks a requirement, as opposed to a run that failed.
    pub fn cannot_run_here(&self) -> bool {
        match self.root_cause() {
            Error::Image(error) => error.cannot_run_here(),
            Error::NeedsRoot { .. }
            | Error::Unavailable { .. }
            | Error::JournalDirectory { .. }
            | Error::JournalOwner { .. }
            | Error::NoSpace { .. }
            | Error::InPageCache { .. }
            | Error::Starved { .. } => true,
            error => error.is_out_of_memory(),
        }
    }

    /// The innermost error, without the job and the image that it concerns.
    pub fn root_cause(&self) -> &Error {
        match self {
            Error::InBatch { source, .. } | Error::OnImage { source, .. } => source.root_cause(),
            error => error,
        }
    }

    /// Whether it concerns one of several jobs of a boot.
    pub fn is_in_batch(&self) -> bool {
        match self {
            Error::InBatch { .. } => true,
            Error::OnImage { source, .. } => source.is_in_batch(),
            _ => false,
        }
    }

    /// This error without the path of the image.
    pub fn without_image(self) -> Error {
        match self {
            Error::OnImage { source, .. } => *source,
            error => error,
        }
    }

    /// This error with the kernel at `path`, which was booted, unless that is named already or has
    /// no part in it.
    pub(crate) fn on_image(self, path: &Path) -> Error {
        let stays = match &self {
            Error::OnImage { .. } => true,
            Error::Image(error) => error.names_kernel() || error.is_host_problem(),
            _ => false,
        };
        if stays { self } else { Error::OnImage { image: path.to_owned(), source: Box::new(self) } }
    }

    /// This error of a job, before which its kernel had `warnings`.
    pub(crate) fn with_warnings(self, warnings: &[Incident]) -> Error {
        let Some(first) = warnings.first() else { return self };
        let line = first.summary();
        crate::image::Error::KernelWarning { line, source: Box::new(self) }.into()
    }

    /// Whether a kernel that was booted said of itself that it is not in order.
    pub fn is_kernel_failure(&self) -> bool {
        matches!(self.root_cause(), Error::Image(error) if error.is_kernel_failure())
    }

    /// Whether tracing is unavailable for all jobs.
    pub fn lacks_tracing(&self) -> bool {
        match self.root_cause() {
            Error::Unavailable { what, .. } => {
                what == "tracefs" || what.starts_with(crate::trace::TRACEPOINT_PREFIX)
            }
            _ => false,
        }
    }

    /// Whether the system had no memory for a call.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        let (Error::Os { source, .. } | Error::Call { source, .. }) = self else { return false };
        source.kind() == io::ErrorKind::OutOfMemory
    }

    /// This error, in which `remedy` is what takes less room.
    pub(crate) fn with_space_remedy(self, remedy: &'static str) -> Self {
        match self {
            Error::NoSpace { path, bytes, available_bytes, .. } => {
                Error::NoSpace { path, bytes, available_bytes, remedy }
            }
            error => error,
        }
    }

    pub(crate) fn os(action: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Error::Os { action, path: path.to_owned(), source: source.into() }
    }

    pub(crate) fn call(action: &'static str, source: impl Into<io::Error>) -> Self {
        Error::Call { action, source: source.into() }
    }

    pub(crate) fn unavailable(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Error::Unavailable { what: what.into(), remedy: remedy.into() }
    }
}

/// Refuses `what` to everybody but root.
pub(crate) fn require_root(what: &'static str) -> Result<(), Error> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(Error::NeedsRoot { what }) }
}
