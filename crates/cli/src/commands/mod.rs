//! The commands.

pub mod advise;
pub mod calibrate;
pub mod compare;
pub mod conform;
pub mod doctor;
pub mod explain;
pub mod folio_ops;
pub mod govern;
mod program;
pub mod published;
pub mod record;
pub mod report;
pub mod run;
pub mod search;
mod show_job;

use filemap_job::{Job, JobSpec, shell_word};

use crate::error::Error;
use crate::input;
use crate::job_flags::JobFlags;
use crate::machine_profile;
use crate::output::Inputs;

/// `command` with the number of seeds that was asked for.
fn with_seeds(command: String, seeds: Option<u64>) -> String {
    seeds.map_or(command.clone(), |seeds| format!("{command} --seeds {seeds}"))
}

/// Where the job of a command came from.
pub struct GivenJob {
    file: Option<String>,
    /// What flags said on top of the file.
    flags: JobSpec,
    /// What was said with --kernel, or in the file, if anything was.
    kernel: Option<String>,
    /// What the command reads.
    inputs: Inputs,
}

impl GivenJob {
    /// Whence the job of `flags` on top of that of `file` came, and that job with the lists and
    /// headers that it needs.
    fn new(file: Option<String>, flags: JobFlags) -> Result<(Self, JobSpec), Error> {
        let (images, modules) = (flags.image.clone(), flags.modules.clone());
        let flags = JobSpec::from(flags);
        let of_file = file.as_deref().map_or(Ok(JobSpec::default()), input::job_file)?;
        let mut spec = of_file.overlay(flags.clone());
        let inputs = Inputs::of(file.as_deref(), &images, &modules, &spec);
        input::accesses_files(&mut spec)?;
        if let Some(path) = spec.file.as_ref().filter(|_| spec.maps_elf()) {
            spec.elf = Some(input::segments(path)?);
        }
        Ok((GivenJob { file, flags, kernel: spec.kernel.clone(), inputs }, spec))
    }

    /// The command that runs `job`, which came of this, again. What is said in phases has no
    /// flags.
    fn command(&self, name: &str, job: &Job) -> String {
        match &self.file {
            Some(file) if job.phases.len() > 1 => {
                let words = ["filemap".to_string(), name.to_string(), shell_word(file)];
                words.into_iter().chain(self.flags.flags()).collect::<Vec<_>>().join(" ")
            }
            _ => {
                // Where no flag says otherwise, the machine is the same again.
                let mut job = job.clone();
                job.machine.profile = job.machine.profile.take().filter(|name| needs_said(name));
                let command = job.command();
                let command = command.replacen("filemap run", &format!("filemap {name}"), 1);
                let rules = format!("--kernel {}", job.rules.kernel.name());
                match self.kernel.as_deref() {
                    // More than the rules is this machine's.
                    Some("host") => command.replacen(&rules, "--kernel host", 1),
                    _ => command,
                }
            }
        }
    }
}

/// Whether a command has to name the machine profile `name` to go by it.
pub fn needs_said(name: &str) -> bool {
    machine_profile::users_own().map_or(true, |(usual, _)| usual != name)
}
