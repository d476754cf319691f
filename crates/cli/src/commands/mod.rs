//! The commands.

pub mod calibrate;
pub mod compare;
pub mod conform;
pub mod doctor;
pub mod explain;
pub mod published;
pub mod run;

use filemap_job::JobSpec;

use crate::error::Error;
use crate::input;
use crate::job_flags::JobFlags;

/// The job of `flags` on top of that of `file`, with the lists and headers that it needs.
fn job_spec(file: Option<&str>, flags: JobFlags) -> Result<JobSpec, Error> {
    let spec = file.map_or(Ok(JobSpec::default()), input::job_file)?;
    let mut spec = spec.overlay(flags.into());
    input::accesses_files(&mut spec)?;
    input::segments(&mut spec)?;
    Ok(spec)
}
