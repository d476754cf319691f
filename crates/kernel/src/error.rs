//! Errors of operations on a real kernel.

use std::io;
use std::path::{Path, PathBuf};

use crate::image::Incident;

/// Errors of this crate. Each message is one line and names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The action requires root.
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
    /// The process is shutting down after a signal: nothing new is started.
    #[error("interrupted by a signal")]
    ShuttingDown,
    /// A system call on a path failed.
    #[error("cannot {action} '{}': {source}", path.display())]
    Os {
        /// The action, as a verb phrase.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// A system call that concerns no path failed.
    #[error("cannot {action}: {source}")]
    Call {
        /// The action, as a verb phrase.
        action: &'static str,
        /// The system error.
        source: io::Error,
    },
    /// Trace events were lost.
    #[error("the trace lost {lost} events in {buffer_kib} KiB per CPU: use fewer accesses")]
    LostEvents {
        /// Events that were overwritten or dropped.
        lost: u64,
        /// Size of the buffer.
        buffer_kib: u64,
    },
    /// A trace line has an unknown format.
    #[error(
        "cannot read trace event '{line}': this kernel writes it in an unknown format, report it"
    )]
    TraceFormat {
        /// The line.
        line: String,
    },
    /// Pages of a file could not be dropped from the page cache.
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
    /// The journal cannot be created in this directory.
    #[error(
        "cannot keep a journal in '{}': {reason}; set FILEMAP_STATE to the absolute path of a \
         writable directory",
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
    /// Other processes evict pages of the file while it is observed.
    #[error(
        "something else removed pages of '{}' from the page cache in {runs} runs: stop what \
         reclaims memory (such as DAMON), or use fewer accesses",
        path.display()
    )]
    Disturbed {
        /// The file.
        path: PathBuf,
        /// Number of runs tried.
        runs: u32,
    },
    /// A tool that creates a filesystem failed.
    #[error("{tool} on '{}' failed: {message}", path.display())]
    Tool {
        /// Its name.
        tool: &'static str,
        /// The device or file.
        path: PathBuf,
        /// The first line of its output.
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
    /// There is not enough disk space for a run.
    #[error(
        "no room for {bytes} bytes in '{}': {available_bytes} bytes are available there, besides a \
         reserve that is kept free; name another directory in TMPDIR, or give {remedy}",
        path.display()
    )]
    NoSpace {
        /// The directory.
        path: PathBuf,
        /// Bytes to be written.
        bytes: u64,
        /// Bytes that may be written there.
        available_bytes: u64,
        /// A change to the job that needs less space.
        remedy: &'static str,
    },
    /// A file that other programs may use is cached, so it is not dropped.
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
    /// The file does not have, or no longer has, the size in the job.
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
    /// One of several jobs of a boot failed.
    #[error("job {number} of {jobs} in this boot ({name}): {source}")]
    InBatch {
        /// Its number, from 1.
        number: usize,
        /// Number of jobs of the boot.
        jobs: usize,
        /// The job.
        name: String,
        /// The cause.
        source: Box<Error>,
    },
    /// A job failed on a booted kernel.
    #[error("{}: {source}", image.display())]
    OnImage {
        /// The kernel, as given by the user.
        image: PathBuf,
        /// The cause.
        source: Box<Error>,
    },
    /// A process that no probe can run.
    #[error("the probe cannot run this: {0}")]
    InvalidProcess(String),
    /// The probe's child reported a failure.
    #[error("the probe stopped: {message}")]
    Child {
        /// Its message.
        message: String,
    },
    /// The OOM killer killed the probe's child because its memory cgroup was full.
    #[error(
        "out of memory in {limit_bytes} bytes: raise the memory limit (memory_max), or hold and \
         write fewer pages"
    )]
    OutOfMemory {
        /// The limit.
        limit_bytes: u64,
    },
    /// The system refused memory or address space to the probe's child.
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
        /// Index of the mapping.
        mapping: usize,
        /// Index of the page in the mapping.
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
        /// What to check.
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

    /// The innermost error, without its job and image.
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

    /// This error with the booted kernel at `path`, unless it already names the kernel or the
    /// kernel is not involved.
    pub(crate) fn on_image(self, path: &Path) -> Error {
        let stays = match &self {
            Error::OnImage { .. } => true,
            Error::Image(error) => error.names_kernel() || error.is_host_problem(),
            _ => false,
        };
        if stays { self } else { Error::OnImage { image: path.to_owned(), source: Box::new(self) } }
    }

    /// This error of a job whose kernel had printed `warnings` before.
    pub(crate) fn with_warnings(self, warnings: &[Incident]) -> Error {
        let Some(first) = warnings.first() else { return self };
        let line = first.summary();
        crate::image::Error::KernelWarning { line, source: Box::new(self) }.into()
    }

    /// Whether a booted kernel reported a failure of its own.
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

    /// Whether a call failed for lack of memory.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        let (Error::Os { source, .. } | Error::Call { source, .. }) = self else { return false };
        source.kind() == io::ErrorKind::OutOfMemory
    }

    /// This error, with `remedy` for lack of space.
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

    pub(crate) fn unavailable(feature: impl Into<String>, remedy: impl Into<String>) -> Self {
        Error::Unavailable { what: feature.into(), remedy: remedy.into() }
    }
}

/// Fails unless this process is root; `action` describes what needs it.
pub(crate) fn require_root(action: &'static str) -> Result<(), Error> {
    if rustix::process::geteuid().is_root() {
        Ok(())
    } else {
        Err(Error::NeedsRoot { what: action })
    }
}
