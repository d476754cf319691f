//! Why a process cannot be followed, or acted on.

use std::io;
use std::path::PathBuf;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refuses something.
    #[error("{what}: {cause}; {remedy}")]
    Refused {
        /// What was asked for.
        what: String,
        cause: io::Error,
        /// What to do about it.
        remedy: String,
    },
    /// The process has ended, or never was.
    #[error("process {pid} is gone; name one that runs")]
    Gone { pid: u32 },
    /// What was named as a process is one of its other threads.
    #[error("{tid} is a thread of process {pid}; name that process")]
    Thread { tid: u32, pid: u32 },
    /// A mapped file is not opened.
    #[error("'{}' of process {pid} is not opened: {reason}", .path.display())]
    NotOpened { pid: u32, path: PathBuf, reason: String },
    /// No cgroup has this name.
    #[error("no cgroup '{name}' under /sys/fs/cgroup; give its path there, or a unit x.service")]
    NoCgroup { name: String },
}

impl Error {
    pub(crate) fn refused(what: impl Into<String>, cause: io::Error, remedy: &str) -> Error {
        Error::Refused { what: what.into(), cause, remedy: remedy.into() }
    }
}

/// What the operating system says, without its error number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}
