//! Programs that are run again and again to be measured.
//!
//! A program is metered by what the kernel accounts to children that were waited for.

mod ran;

use std::fs::File;
use std::io;
use std::path::Path;

use filemap_attach::program::{Program, refused};
use filemap_kernel::metered::MeteredRun;
use filemap_kernel::{Error as KernelError, cold, metered, page_size, shutdown};

use crate::error::Error;
pub use ran::{OUTCOMES, Outcome, Ran, agree, differ, ended};

/// How the lines begin that filemap writes to the stderr of a program.
const OWN_LINES: &[u8] = b"filemap: ";

/// Runs `program` once, without input, to its end.
///
/// # Errors
/// When it cannot be run, or stops and nobody lets it go on.
pub fn run(program: &Program) -> Result<MeteredRun, Error> {
    let metered = metered::run(&mut program.command(), OWN_LINES);
    let metered = metered.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => Error::CannotRun(format!(
            "'{}' has stopped itself and was ended; give a program that needs nobody to let it go \
             on",
            program.path.display()
        )),
        _ => refused(program, &error).into(),
    });
    // A program that was ended with this command has not come to an end of its own.
    shutdown::wait_if_begun();
    metered
}

/// Drops the files at `paths` from the page cache, and says how many of their bytes stay there.
/// What cannot be dropped at all goes to `notes`, once.
///
/// # Errors
/// When a signal ends this command.
pub fn drop_all<'a>(
    paths: impl Iterator<Item = &'a Path>,
    notes: &mut Vec<String>,
) -> Result<u64, Error> {
    let mut cached_bytes = 0;
    for path in paths {
        let opened = File::open(path).map_err(|error| error.to_string());
        let dropped = opened.map(|file| cold::drop_open_file(&file, path));
        let failed = match dropped {
            Ok(Ok(())) => continue,
            Ok(Err(KernelError::StillCached { pages, .. })) => {
                cached_bytes += pages * page_size();
                continue;
            }
            Ok(Err(error @ KernelError::ShuttingDown)) => return Err(error.into()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error,
        };
        let note =
            format!("'{}' could not be dropped from the page cache: {failed}.", path.display());
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    Ok(cached_bytes)
}
