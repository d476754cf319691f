//! Converts a recording to a job.
//!
//! Consecutive touches of one mapping by one thread become a phase with a list of pages;
//! consecutive reads of one size from one open file become a phase with a list of offsets. The
//! lists are shared with the validated job and not written out as text.

pub(crate) mod advice;
mod approximation;
mod drafts;
mod gather;
mod order;
mod steps;

use std::io::Read;
use std::path::{Path, PathBuf};

use filemap_job::JobSpec;

pub use self::approximation::Approximation;
use self::gather::RecordedProgram;
use crate::error::{Error, Problem};
use crate::reader::Reader;

/// The job of a recording, and how it differs from the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    /// The job.
    pub program: JobSpec,
    /// What a job cannot express, or the recording does not contain.
    pub approximations: Vec<Approximation>,
    /// The device (`st_dev`) of the most used file, if no file exists here any more.
    pub gone_device: Option<u64>,
    /// The number of pages that may have been touched unseen, if that can change an answer; 0
    /// otherwise.
    pub unseen_pages: u64,
    /// The number of further pages that may have been touched and cannot be named, or are too many
    /// for a job; 0 if that cannot change an answer.
    pub unknown_pages: u64,
}

/// What a conversion takes the pages of [`crate::EventKind::Unseen`] for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnseenPages {
    /// Not touched: the job has the fewest touches that the recording allows.
    Untouched,
    /// All touched, in page order: the job has the most.
    Touched,
}

/// A file on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingFile {
    /// The file below an overlay that holds its pages: the job uses that.
    pub layer: Option<PathBuf>,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Device and inode.
    pub identity: (u64, u64),
}

/// Converts the recording that `reader` reads. `existing` looks up a readable regular file by path;
/// files that it does not find are created by the job, with the recorded size.
///
/// # Errors
/// The recording cannot be read, or has no accesses.
pub fn convert<R: Read>(
    reader: &mut Reader<R>,
    existing: &dyn Fn(&Path) -> Option<ExistingFile>,
    unseen: UnseenPages,
) -> Result<Conversion, Error> {
    let mut gathered = RecordedProgram::new(reader.header(), unseen);
    for event in reader.by_ref() {
        gathered.add(event?);
    }
    gathered.approximations.set_lost(reader.totals().lost);
    gathered.approximations.set_truncated(reader.truncated());
    let spec = gathered.program(existing);
    let nothing = || match reader.truncated() {
        Some(_) => Problem::CutOff,
        None => Problem::Nothing,
    };
    spec.ok_or_else(|| reader.error(nothing()))
}
