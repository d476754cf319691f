//! Errors from following a process or acting on it.

use std::io;
use std::path::PathBuf;

/// Error of this crate. Messages name the process or file and, where possible, the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refused an operation.
    #[error("{what}: {cause}; {remedy}")]
    Refused {
        /// The refused operation, as the subject of the message.
        what: String,
        cause: io::Error,
        /// Advice for the user, phrased as an imperative.
        remedy: String,
    },
    /// No such process, or it has exited.
    #[error("process {pid} is gone; name one that runs")]
    Gone { pid: u32 },
    /// The given ID is a thread ID, not the ID of a thread group leader.
    #[error("{tid} is a thread of process {pid}; name that process")]
    Thread { tid: u32, pid: u32 },
    /// A mapped file could not be opened safely.
    #[error("'{}' of process {pid} is not opened: {reason}", .path.display())]
    NotOpened { pid: u32, path: PathBuf, reason: String },
    /// No cgroup matches this name.
    #[error("no cgroup '{name}' under /sys/fs/cgroup; give its path there, or a unit x.service")]
    NoCgroup { name: String },
}

impl Error {
    pub(crate) fn refusal(action: impl Into<String>, cause: io::Error, remedy: &str) -> Error {
        Error::Refused { what: action.into(), cause, remedy: remedy.into() }
    }
}

/// The text of an OS error in lower case, without the trailing "(os error N)".
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}
