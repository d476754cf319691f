//! Programs that are run again and again to be measured, plain or governed.
//!
//! A program is metered by what the kernel accounts to children that were waited for. A governed
//! run is `filemap govern --json` itself, run as a child, so that its own costs count.

mod ran;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use filemap_attach::program::{Program, refused};
use filemap_govern::Collecting;
use filemap_kernel::metered::Metered;
use filemap_kernel::{Error as KernelError, cold, ending, metered, page_size};

use crate::error::{Error, reason};
use crate::govern::run::Run;
pub use ran::{OUTCOMES, Outcome, Ran, agree, differ, ended};

/// How the lines begin that filemap writes to the stderr of a program.
const OWN_LINES: &[u8] = b"filemap: ";

/// Runs `program` once, without input, to its end.
///
/// # Errors
/// When it cannot be run, or stops and nobody lets it go on.
pub fn run(program: &Program) -> Result<Metered, Error> {
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
    ending::wait_if_begun();
    metered
}

/// A program that is run governed, by another process of this command.
pub struct Governed {
    command: Program,
    /// Where it is told what was done.
    json: PathBuf,
    /// The directory of that.
    _collecting: Collecting,
}

/// What was done in a governed run.
#[derive(Debug, Default)]
pub struct Told {
    /// Files of which mappings were governed.
    pub paths: Vec<String>,
    /// Why none was, where that is known.
    pub ungoverned: Option<String>,
}

impl Governed {
    /// `program`, governed with these `flags`. There is one such program at a time.
    ///
    /// # Errors
    /// When this command does not find itself, or there is no place for what is told.
    pub fn of(program: &Program, flags: &[String]) -> Result<Governed, Error> {
        let own = std::env::current_exe().map_err(|error| {
            Error::CannotRun(format!("filemap does not find itself: {}", reason(&error)))
        })?;
        let collecting =
            Collecting::begin().map_err(|error| Error::CannotRun(error.to_string()))?;
        let json = collecting.directory().join("governed.json");
        let mut words: Vec<OsString> = ["filemap", "govern"].map(OsString::from).to_vec();
        words.extend(flags.iter().map(OsString::from));
        words.extend(["--json".into(), json.clone().into_os_string(), "--".into()]);
        words.push(program.path.clone().into_os_string());
        words.extend(program.words[1..].iter().cloned());
        Ok(Governed { command: Program { path: own, words }, json, _collecting: collecting })
    }

    /// Runs it once, as [`run`] does.
    ///
    /// # Errors
    /// When it cannot be run, or stops and nobody lets it go on.
    pub fn run(&self) -> Result<Metered, Error> {
        let _ = fs::remove_file(&self.json);
        run(&self.command)
    }

    /// What was done in the last run.
    pub fn told(&self) -> Told {
        let text = fs::read(&self.json).unwrap_or_default();
        let Ok(Run { processes, ungoverned, .. }) = serde_json::from_slice(&text) else {
            let ungoverned = Some("it could not be told what was done".to_string());
            return Told { paths: Vec::new(), ungoverned };
        };
        let mappings = processes.into_iter().flat_map(|process| process.mappings);
        let paths = mappings.filter_map(|mapping| mapping.own.path);
        let mut paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        paths.sort();
        paths.dedup();
        Told { paths, ungoverned }
    }
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
