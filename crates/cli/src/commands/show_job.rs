//! `filemap run --show-job`: the program that a job is, as a job file.

use std::io::Write;

use filemap_job::{JobSpec, ProgramSpec};

use crate::Outcome;
use crate::error::Error;
use crate::given::{self, Given};
use crate::output::Target;
use filemap_study::input;

/// Prints what was `given`.
///
/// # Errors
/// What is wrong with the job, and a job that is no program.
pub fn run(given: &Given) -> Result<Outcome, Error> {
    let mut written = given.written.clone();
    let found = given.resolve(&mut written)?;
    given::profile(&mut written)?;
    let job = given.validate(&written)?;
    let shown = as_given(job.spec.clone(), &given.written.flags());
    if job.of_flags.is_some() {
        // Less can be mapped by a program than by a job of one file.
        job.spec.validate(input::host_release().as_deref())?;
    }
    print(&shown, &found.warnings)
}

/// `program` with the engine, kernel, series, profile and runs that were `given`, and no others:
/// what takes the file can still say them.
fn as_given(program: ProgramSpec, given: &JobSpec) -> ProgramSpec {
    let JobSpec { on, kernel, with, machine, runs, .. } = given.clone();
    ProgramSpec { on, kernel, with, machine, runs, ..program }
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
