//! Flags that a job file with tables does not take, and what names the file in messages.

use filemap_job::program::THRASH;
use filemap_job::{Flag, JobSpec, Of, ProgramSpec};

use crate::error::Error;

/// Refuses what `flags` say that the job file with tables at `path` cannot take.
pub fn check(flags: &JobSpec, path: &str) -> Result<(), Error> {
    if flags.is_thrash() {
        return Err(Error::Usage(format!(
            "--workload {THRASH} is a program of its own, and so is {path}; remove the flag, or \
             give it without {path}"
        )));
    }
    let Some(flag) = ProgramSpec::foreign_flag(flags) else { return Ok(()) };
    Err(Error::Usage(match workload_of(&flag) {
        Some(name) => {
            format!("{flag} is for --workload {name}, and {path} is a program; remove the flag")
        }
        None => format!(
            "{flag} is for a job of one file, and {path} is a program; remove the flag, or put its \
             value into {path}"
        ),
    }))
}

/// Why a command takes no `flag` with the job file with tables at `path`.
pub fn not_of_tables(flag: &str, path: &str) -> Error {
    Error::Usage(format!(
        "{flag} is for a job of one file, and {path} is a program; remove the flag, or give a job \
         of one file"
    ))
}

/// The workload that alone has `flag`, with its dashes, beside job files with tables.
pub fn workload_of(flag: &str) -> Option<&'static str> {
    let found = Flag::all().find(|known| known.name == flag.trim_start_matches("--"))?;
    match found.of {
        Of::Thrash => Some(THRASH),
        Of::All | Of::OneFile => None,
    }
}

/// What ended the job of the job file at `path`. What its author has to change there names the
/// file.
pub fn in_file(path: &str, error: Error) -> Error {
    use filemap_kernel::Error as OfKernel;
    use filemap_model::Error as OfModel;
    let is_of_file = match &error {
        Error::Model(error) => matches!(
            error,
            OfModel::Bus { .. }
                | OfModel::OutOfMemory { .. }
                | OfModel::ProgramOutOfMemory { .. }
                | OfModel::SettledThreads { .. }
        ),
        Error::Kernel(error) => {
            matches!(error.cause(), OfKernel::BeyondFile { .. } | OfKernel::OutOfMemory { .. })
        }
        _ => false,
    };
    match is_of_file {
        true => Error::InFile { path: path.to_string(), error: Box::new(error) },
        false => error,
    }
}
