//! Programs that are run again and again to be measured.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use filemap_kernel::governor::PRELOAD;
use filemap_kernel::metered::Metered;
use filemap_kernel::{Error as KernelError, cold, metered, page_size};

use super::environment::{self, Variables};
use super::lookup::Program;
use super::{inherited, start};
use crate::error::Error;
use crate::interrupt;

/// How the lines begin that filemap and the library write to the stderr of a program.
const OWN_LINES: &[u8] = b"filemap: ";

/// Runs `program` once, without input, to its end. It is told what is `said`; without anything it
/// is run as it is, also where whoever runs this command is governed.
///
/// # Errors
/// When it cannot be run, or stops and nobody lets it go on.
pub fn run(program: &Program, said: Option<&Variables>) -> Result<Metered, Error> {
    let mut command = Command::new(&program.path);
    command.arg0(&program.words[0]).args(&program.words[1..]);
    let is_governed = std::env::var_os(PRELOAD).is_some();
    match said {
        Some(said) => command.envs(said.iter().cloned()),
        None if is_governed => command.envs(environment::off()),
        None => &mut command,
    };
    // SAFETY: between fork and exec only system calls are made; nothing is allocated.
    unsafe {
        command.pre_exec(|| {
            inherited::restore_signals();
            Ok(())
        });
    }
    let metered = metered::run(&mut command, OWN_LINES).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => Error::CannotRun(format!(
            "'{}' has stopped itself and was ended; give a program that needs nobody to let it go \
             on",
            program.path.display()
        )),
        _ => start::refused(program, &error),
    });
    // A program that was ended with this command has not come to an end of its own.
    interrupt::wait_if_ending();
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
            Ok(Err(error @ KernelError::Ending)) => return Err(error.into()),
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
