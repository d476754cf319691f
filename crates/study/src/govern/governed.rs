//! A program that is run governed, to be measured: by `filemap govern --json` itself, as a child,
//! so that its own costs count.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use filemap_attach::program::Program;
use filemap_govern::Collecting;
use filemap_kernel::metered::MeteredRun;

use super::run::Run;
use crate::error::{Error, reason};
use crate::trial::run;

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
    pub fn run(&self) -> Result<MeteredRun, Error> {
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
