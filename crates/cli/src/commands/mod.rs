//! The commands.

pub mod calibrate;
pub mod compare;
pub mod conform;
pub mod doctor;
pub mod explain;
pub mod published;
pub mod run;

use filemap_job::{Job, JobSpec};

use crate::error::Error;
use crate::input;
use crate::job_flags::JobFlags;

/// The job of a command, and where it came from.
struct Asked {
    spec: JobSpec,
    file: Option<String>,
    /// The flags that were given on top of the file.
    flags: Vec<String>,
}

impl Asked {
    /// The job of `flags` on top of that of `file`, with the lists and headers that it needs.
    fn new(file: Option<String>, flags: JobFlags) -> Result<Self, Error> {
        let words = JobSpec::from(flags.clone()).flags();
        Ok(Asked { spec: job_spec(file.as_deref(), flags)?, file, flags: words })
    }

    /// Whether `flag` was given, not only by a job file.
    fn gives(&self, flag: &str) -> bool {
        self.flags.iter().any(|word| word == flag)
    }

    /// The command that runs `job`, which came of this, again. What is said in phases has no
    /// flags.
    fn command(&self, name: &str, job: &Job) -> String {
        match &self.file {
            Some(file) if job.phases.len() > 1 => {
                [&["filemap".to_string(), name.to_string(), file.clone()], self.flags.as_slice()]
                    .concat()
                    .join(" ")
            }
            _ => job.command().replacen("filemap run", &format!("filemap {name}"), 1),
        }
    }
}

/// The job of `flags` on top of that of `file`, with the lists and headers that it needs.
fn job_spec(file: Option<&str>, flags: JobFlags) -> Result<JobSpec, Error> {
    let spec = file.map_or(Ok(JobSpec::default()), input::job_file)?;
    let mut spec = spec.overlay(flags.into());
    input::accesses_files(&mut spec)?;
    input::segments(&mut spec)?;
    Ok(spec)
}
