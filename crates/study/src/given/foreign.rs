//! What a job file with tables does not take, and what names it in messages.

use filemap_job::program::THRASH;
use filemap_job::{Flag, Of};

use crate::error::Error;

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
            matches!(error.root_cause(), OfKernel::BeyondFile { .. } | OfKernel::OutOfMemory { .. })
        }
        _ => false,
    };
    if is_of_file {
        Error::InFile { path: path.to_string(), error: Box::new(error) }
    } else {
        error
    }
}
