//! What can be wrong with a recording.

/// What is wrong with a recording: one line that names the file, the byte and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("recording '{name}', byte {at}: {problem}")]
pub struct Error {
    /// The file.
    pub name: String,
    /// The byte of the file that it is about.
    pub at: u64,
    /// What it is.
    pub problem: Problem,
}

/// What can be wrong, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It does not begin as recordings do.
    #[error("it is no recording; give a file that filemap record wrote")]
    Foreign,
    /// Another format.
    #[error(
        "its format has version {version}, and this filemap reads version {known}; read it with \
         the filemap that wrote it, or record again",
        known = crate::VERSION
    )]
    Version {
        /// The version that it names.
        version: u32,
    },
    /// The file ends before the events begin.
    #[error("it ends inside of its header, so that nothing of it can be read; record again")]
    NoHeader,
    /// A checksum does not match.
    #[error("what stands there is damaged; copy the file again, or record again")]
    Damaged,
    /// What the checksum matches says something that cannot be.
    #[error("{what}, which cannot be; record again")]
    Malformed {
        /// What it says.
        what: String,
    },
    /// The file goes on where the recording has ended.
    #[error(
        "the recording ends there, and the file goes on; cut it off there with head -c, or give \
         each recording as a file of its own"
    )]
    Behind,
    /// Nothing of it can be run.
    #[error(
        "it has no access to a file, so that there is no job of it; record a program that reads or \
         maps files"
    )]
    Nothing,
    /// It is cut off before the first block of events is whole.
    #[error(
        "it is cut off before what it has of accesses to a file; copy it again, or record again"
    )]
    CutOff,
    /// The file cannot be read.
    #[error("it cannot be read: {reason}; give a readable file")]
    Read {
        /// What the system says.
        reason: String,
    },
    /// The recording cannot be written.
    #[error("it cannot be written: {reason}; give it room, or another place")]
    Write {
        /// What the system says.
        reason: String,
    },
}

impl Problem {
    /// Something that cannot be.
    pub(crate) fn malformed(what: impl Into<String>) -> Problem {
        Problem::Malformed { what: what.into() }
    }
}
