//! The commands.

pub mod calibrate;
pub mod compare;
pub mod conform;
pub mod doctor;
pub mod explain;
mod program;
pub mod published;
pub mod run;

use filemap_job::{Job, JobSpec};

use crate::error::Error;
use crate::input;
use crate::job_flags::JobFlags;

/// Where the job of a command came from.
struct Asked {
    file: Option<String>,
    /// What flags said on top of the file.
    flags: JobSpec,
}

impl Asked {
    /// Whence the job of `flags` on top of that of `file` came, and that job with the lists and
    /// headers that it needs.
    fn new(file: Option<String>, flags: JobFlags) -> Result<(Self, JobSpec), Error> {
        let flags = JobSpec::from(flags);
        let of_file = file.as_deref().map_or(Ok(JobSpec::default()), input::job_file)?;
        let mut spec = of_file.overlay(flags.clone());
        input::accesses_files(&mut spec)?;
        input::segments(&mut spec)?;
        Ok((Asked { file, flags }, spec))
    }

    /// The command that runs `job`, which came of this, again. What is said in phases has no
    /// flags.
    fn command(&self, name: &str, job: &Job) -> String {
        match &self.file {
            Some(file) if job.phases.len() > 1 => {
                let words = ["filemap".to_string(), name.to_string(), file.clone()];
                words.into_iter().chain(self.flags.flags()).collect::<Vec<_>>().join(" ")
            }
            _ => job.command().replacen("filemap run", &format!("filemap {name}"), 1),
        }
    }
}
