//! `filemap run --show-job`: the program that a job is, as a job file.

use std::io::Write;

use filemap_job::{Job, JobSpec, ProgramSpec};

use super::program::GivenProgram;
use super::{FlagJob, GivenJob};
use crate::Outcome;
use crate::error::Error;
use crate::input::{self, GivenFile};
use crate::job_flags::JobFlags;
use crate::output::Target;
use crate::{host, machine_profile};

/// Prints the program of a job of one file.
///
/// # Errors
/// What is wrong with the job, and a job that is no program.
pub fn of_flags((_, mut spec): (GivenJob, JobSpec)) -> Result<Outcome, Error> {
    if spec.is_thrash() {
        let message = "--show-job has no job file for --workload thrash, which is no program; leave \
                       it out, or give another --workload";
        return Err(Error::Usage(message.to_string()));
    }
    let found = host::resolve(&mut spec)?;
    machine_profile::of(&mut spec)?;
    let program = Job::of_spec(spec)?.program_spec();
    // Less can be mapped by a program than by a job of one file.
    program.validate(input::host_release().as_deref())?;
    print(&program, &found.warnings)
}

/// Prints the program at `path`, with `flags` on top.
///
/// # Errors
/// What is wrong with it.
pub fn of_program(given: GivenFile, path: &str, flags: JobFlags) -> Result<Outcome, Error> {
    let asked = GivenProgram::new(given, path, flags)?;
    let mut spec = asked.spec.clone();
    let found = asked.resolve(&mut spec)?;
    super::program::profile(&mut spec)?;
    let program = asked.validate(&spec)?;
    print(&program.spec, &found.warnings)
}

fn print(program: &ProgramSpec, warnings: &[String]) -> Result<Outcome, Error> {
    let mut text: String = warnings.iter().map(|warning| format!("# {warning}.\n")).collect();
    // The largest number of a job file is that of an i64.
    text += &toml::to_string(program).map_err(|error| {
        Error::CannotRun(format!("the job fits no job file: {error}; give smaller numbers"))
    })?;
    let mut target = Target::stdout()?;
    target.write_all(text.as_bytes()).map_err(|error| crate::output::failed_on_stdout(&error))?;
    target.finish()?;
    Ok(Outcome::Done)
}
