//! From a recording to the job of a program.
//!
//! Consecutive touches of one mapping by one thread are a phase that lists its pages, and
//! consecutive reads of one length from one open file are a phase that lists its offsets. The lists
//! are shared with the job that is made of them, and never written out as text.

mod advice;
mod approximation;
mod drafts;
mod gather;
mod order;
mod steps;

use std::io::Read;
use std::path::Path;

use filemap_job::ProgramSpec;

pub use self::approximation::Approximation;
use self::gather::RecordedProgram;
use crate::error::{Error, Problem};
use crate::reader::Reader;

/// The job of a recording, and what it says otherwise than the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    /// The program.
    pub program: ProgramSpec,
    /// What a job cannot say, or the recording does not know.
    pub approximations: Vec<Approximation>,
}

/// A file that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExistingFile {
    /// Its size in bytes.
    pub size_bytes: u64,
    /// What tells it from others: device and inode.
    pub identity: (u64, u64),
}

/// The job of the recording that `reader` reads. `existing` looks for a regular file that can be
/// read.
///
/// # Errors
/// When it cannot be read, or has no access.
pub fn convert<R: Read>(
    reader: &mut Reader<R>,
    existing: &dyn Fn(&Path) -> Option<ExistingFile>,
) -> Result<Conversion, Error> {
    let mut gathered = RecordedProgram::new(reader.header());
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
