//! Files of a search: its state, and the job files of its results.

use std::fs;
use std::io;
use std::path::Path;

use filemap_job::{JobFlags, shell_word};
use filemap_study::engine::Engines;
use filemap_study::input;
use filemap_study::job_input::repeat_command;
use filemap_study::search::{
    SearchControl, SearchFindings, SearchOptions, SearchRecord, SearchState, variants_flag,
};

use crate::error::{Error, reason};
use crate::interrupt::InterruptCounter;
use crate::output::OutputFile;

/// Maximum size of the state, in bytes.
const MAX_STATE_BYTES: u64 = 16 << 20;

/// Counts interrupts, and stores the state of the search in a file.
pub struct SearchKeeper {
    pub interrupts: InterruptCounter,
    pub state: Option<String>,
}

impl SearchControl for SearchKeeper {
    fn interruptions(&self) -> u32 {
        self.interrupts.times()
    }

    fn set_signal_message(&self, word: String) {
        self.interrupts.set_exit_message(word);
    }

    fn path(&self) -> Option<&str> {
        self.state.as_deref()
    }

    fn write(&self, state: &str) -> Result<(), Error> {
        self.state.iter().try_for_each(|path| OutputFile::open(path)?.write(state.as_bytes()))
    }
}

impl SearchKeeper {
    /// Reads the state of `search` from the file; the initial state if the file is missing or
    /// empty.
    ///
    /// # Errors
    /// If the file is not a state file, or belongs to another search.
    pub fn read(
        &self,
        search: &SearchOptions<'_, impl Engines + Sync>,
    ) -> Result<SearchFindings, Error> {
        let is_there = |path: &&String| fs::metadata(path).is_ok_and(|data| data.len() > 0);
        let Some(path) = self.state.as_ref().filter(is_there) else {
            return Ok(SearchFindings::default());
        };
        let refused =
            |problem: String| Error::Usage(format!("--state {}: {problem}", shell_word(path)));
        let text = input::read("state of a search", path, MAX_STATE_BYTES)?;
        let state = SearchState::read(&text, &search.name, search.jobs).map_err(refused)?;
        let broken = "its jobs do not show the differences that it records; give a new file";
        search.restore(state)?.ok_or_else(|| refused(broken.to_string()))
    }
}

/// A new or empty directory for the job files of a search.
pub struct JobFiles {
    path: String,
}

impl JobFiles {
    /// Checks the directory at `path`, which may be missing.
    ///
    /// # Errors
    /// If it is not empty, or its parent is missing.
    pub fn new(path: String) -> Result<Self, Error> {
        let refused =
            |reason: String| Error::Usage(format!("--output {}: {reason}", shell_word(&path)));
        match fs::read_dir(&path).map(Iterator::count) {
            Ok(0) => {}
            Ok(_) => return Err(refused("it is not empty; give a new directory".to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let parent = Path::new(&path).parent().unwrap_or(Path::new("."));
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                if !parent.is_dir() {
                    let parent = parent.display();
                    return Err(refused(format!(
                        "there is no directory '{parent}'; make it first"
                    )));
                }
            }
            Err(error) => return Err(refused(format!("{}; give a new directory", reason(&error)))),
        }
        Ok(JobFiles { path })
    }

    /// Writes the jobs of `search` to files, and makes their commands refer to them.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, search: &mut SearchRecord) -> Result<(), Error> {
        if search.groups.is_empty() {
            return Ok(());
        }
        if let Err(error) = fs::create_dir(&self.path)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(Error::Write { path: self.path.clone(), reason: reason(&error) });
        }
        let words = [variants_flag(&search.variants)];
        for (number, group) in (1..).zip(&mut search.groups) {
            for case in &mut group.cases {
                let path = Path::new(&self.path).join(format!("{number:02}-{}.toml", case.case));
                let path = path.into_os_string().into_string().expect("its parts are texts");
                let text = format!("# {}\n{}", group.mechanism, case.job.to_short_toml());
                OutputFile::open(&path)?.write(text.as_bytes())?;
                case.command = repeat_command("compare", &[path], &JobFlags::default(), &words);
            }
        }
        Ok(())
    }
}
