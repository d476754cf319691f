//! Errors of recordings.

/// An error in a recording. Displays as one line with the file, the offset and a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("recording '{name}', byte {at}: {problem}")]
pub struct Error {
    /// Name of the file.
    pub name: String,
    /// Offset in the file, in bytes.
    pub at: u64,
    /// The problem.
    pub problem: Problem,
}

/// A problem and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file does not start with [`crate::MAGIC`].
    #[error("it is no recording; give a file that filemap record wrote")]
    Foreign,
    /// The format has another version.
    #[error(
        "its format has version {version}, and this filemap reads version 1 to {known}; read it with \
         the filemap that wrote it, or record again",
        known = crate::VERSION
    )]
    Version {
        /// The version in the file.
        version: u32,
    },
    /// The file ends inside the header.
    #[error("it ends inside its header, so nothing of it can be read; record again")]
    NoHeader,
    /// A checksum mismatch.
    #[error("it is damaged; copy the file again, or record again")]
    Damaged,
    /// Contents that are invalid although their checksum matches.
    #[error("{what}, which is impossible; record again")]
    Malformed {
        /// The invalid value, as the beginning of a sentence.
        what: String,
    },
    /// There are bytes after the end frame.
    #[error(
        "the recording ends there, but the file continues; cut it off there with head -c, or give \
         each recording as a file of its own"
    )]
    Behind,
    /// The recording has no accesses, so there is no job to run.
    #[error(
        "it has no accesses to files, so it cannot become a job; record a program that reads or \
         maps files"
    )]
    Nothing,
    /// The recording is truncated before its first access.
    #[error("it is cut off before its first access to a file; copy it again, or record again")]
    CutOff,
    /// The file cannot be read.
    #[error("it cannot be read: {reason}; give a readable file")]
    Read {
        /// The error message of the operating system.
        reason: String,
    },
    /// The recording cannot be written.
    #[error("it cannot be written: {reason}; give it room, or another place")]
    Write {
        /// The error message of the operating system.
        reason: String,
    },
}

impl Problem {
    /// Invalid contents.
    pub(crate) fn malformed(reason: impl Into<String>) -> Problem {
        Problem::Malformed { what: reason.into() }
    }
}
