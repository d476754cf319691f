//! Flags that a job file with tables does not take.

use filemap_job::program::THRASH;
use filemap_job::{JobSpec, ProgramSpec};

use crate::error::Error;
use filemap_study::given::workload_of;

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
