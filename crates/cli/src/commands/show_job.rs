//! `filemap run --show-job`: prints a job as a job file with tables.

use std::io::Write;

use filemap_job::JobSpec;

use crate::Outcome;
use crate::error::Error;
use crate::job_input::JobInput;
use crate::output::OutputFile;
use filemap_study::machine_profile;

/// Prints the job `input`. Engine, kernel, series, profile and runs are only included if it names
/// them, so that users of the file can choose others.
///
/// # Errors
/// An invalid job.
pub fn run(input: &JobInput) -> Result<Outcome, Error> {
    let mut spec = input.spec.clone();
    let found = input.resolve(&mut spec)?;
    machine_profile::resolve(&mut spec)?;
    let JobSpec { on, kernel, with, machine, runs, .. } = input.spec.clone();
    let job = input.validate(&spec)?;
    let shown = JobSpec { on, kernel, with, machine, runs, ..job.spec };
    print(&shown, &found.warnings)
}

fn print(program: &JobSpec, warnings: &[String]) -> Result<Outcome, Error> {
    let mut text: String = warnings.iter().map(|warning| format!("# {warning}.\n")).collect();
    // TOML integers are limited to `i64`.
    text += &toml::to_string(program).map_err(|error| {
        Error::CannotRun(format!(
            "the job cannot be written as a job file: {error}; give smaller numbers"
        ))
    })?;
    let mut target = OutputFile::stdout()?;
    target.write_all(text.as_bytes()).map_err(|error| crate::output::failed_on_stdout(&error))?;
    target.finish()?;
    Ok(Outcome::Done)
}
