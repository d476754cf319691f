//! `filemap run --show-job`: the program that a job is, as a job file.

use std::io::Write;

use filemap_job::{JobSpec, ProgramSpec};

use super::GivenJob;
use super::program::GivenProgram;
use crate::Outcome;
use crate::error::Error;
use crate::input;
use crate::output::Target;
use crate::{host, machine_profile};

/// Prints the program of a job of one file.
///
/// # Errors
/// What is wrong with the job, and a job that is no program.
pub fn of_flags((_, mut spec): (GivenJob, JobSpec)) -> Result<Outcome, Error> {
    let found = host::resolve(&mut spec)?;
    machine_profile::of(&mut spec)?;
    let program = spec.validate(input::host_release().as_deref())?.program_spec();
    // Less can be mapped by a program than by a job of one file.
    program.validate(input::host_release().as_deref())?;
    print(&program, &found.warnings)
}

/// Prints the program that was `asked` for.
///
/// # Errors
/// What is wrong with it.
pub fn of_program(asked: &GivenProgram) -> Result<Outcome, Error> {
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
