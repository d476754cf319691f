//! A program under `filemap govern`, which runs as a child so that its own costs count.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use filemap_attach::program::Program;
use filemap_govern::OutputDirectory;
use filemap_kernel::metered::MeteredRun;

use super::run_metered;
use crate::error::{Error, reason};
use crate::govern::GovernRecord;

/// The flag of `filemap govern` that it remembers nothing.
const NO_MEMORY: &str = "--no-memory";

/// A command line of `filemap govern --json` for a program.
pub struct GovernedProgram {
    command: Program,
    /// The file that `--json` writes.
    json: PathBuf,
    /// Its directory.
    _directory: OutputDirectory,
}

/// The files whose mappings were governed in a run.
#[derive(Clone, Debug, Default)]
pub struct GovernedFiles {
    pub paths: Vec<String>,
    /// Why there are none, if known, as the end of a sentence.
    pub ungoverned: Option<String>,
}

impl GovernedProgram {
    /// `program` under `filemap govern` with `flags`, with a memory of its own. Only one may exist
    /// at a time.
    ///
    /// # Errors
    /// When the path of this command is not known, or there is no directory for the report.
    pub fn new(program: &Program, flags: &[String]) -> Result<GovernedProgram, Error> {
        let own = std::env::current_exe().map_err(|error| {
            Error::CannotRun(format!("filemap cannot find its own executable: {}", reason(&error)))
        })?;
        let directory =
            OutputDirectory::create().map_err(|error| Error::CannotRun(error.to_string()))?;
        let json = directory.path().join("governed.json");
        let mut words: Vec<OsString> = ["filemap", "govern"].map(OsString::from).to_vec();
        words.extend(flags.iter().map(OsString::from));
        let remembers = !flags.iter().any(|flag| flag == NO_MEMORY);
        if remembers {
            let memory = directory.path().join("memory");
            words.extend(["--memory".into(), memory.into_os_string()]);
        }
        words.extend(["--json".into(), json.clone().into_os_string(), "--".into()]);
        words.push(program.path.clone().into_os_string());
        words.extend(program.words[1..].iter().cloned());
        Ok(GovernedProgram { command: Program { path: own, words }, json, _directory: directory })
    }

    /// Runs it once.
    ///
    /// # Errors
    /// Errors of [`run_metered`].
    pub fn run(&self) -> Result<MeteredRun, Error> {
        let _ = fs::remove_file(&self.json);
        run_metered(&self.command)
    }

    /// The files that the last run governed.
    pub fn governed_files(&self) -> GovernedFiles {
        let text = fs::read(&self.json).unwrap_or_default();
        let Ok(GovernRecord { processes, ungoverned, .. }) = serde_json::from_slice(&text) else {
            let ungoverned = Some("its report could not be read".to_string());
            return GovernedFiles { paths: Vec::new(), ungoverned };
        };
        let mappings = processes.into_iter().flat_map(|process| process.mappings);
        let paths = mappings.filter_map(|mapping| mapping.own.path);
        let mut paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        paths.sort();
        paths.dedup();
        GovernedFiles { paths, ungoverned }
    }
}
