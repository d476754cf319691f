//! The saved state of a search: the findings of its completed rounds.

use serde::{Deserialize, Serialize};

use super::findings::{ROUND_JOBS, SearchFindings};
use crate::error::Error;

/// Version of the file format.
const STATE_VERSION: u32 = 4;

/// Interruptions of a search, and storage of its state.
pub trait SearchControl: Sync {
    /// Number of interruptions so far.
    fn interruptions(&self) -> u32;

    /// Sets the message for a signal that ends the command.
    fn set_signal_message(&self, word: String);

    /// Path of the state, if it is saved.
    fn path(&self) -> Option<&str>;

    /// Replaces the state atomically.
    ///
    /// # Errors
    /// If it cannot be written; the previous state remains.
    fn write(&self, state: &str) -> Result<(), Error>;
}

/// Content of the file.
#[derive(Serialize, Deserialize)]
pub struct SearchState {
    filemap_search: u32,
    /// The command and filemap's version.
    search: String,
    #[serde(flatten)]
    pub(super) found: SearchFindings,
}

impl SearchState {
    /// State of `search` after completed rounds.
    pub(super) fn new(search: &str, found: SearchFindings) -> SearchState {
        SearchState { filemap_search: STATE_VERSION, search: search.to_string(), found }
    }

    /// The text of the file.
    pub(super) fn text(&self) -> String {
        let text = serde_json::to_string(self).expect("it has keys that are texts");
        format!("{text}\n")
    }

    /// Parses the state of `search`, which is to try `jobs` jobs.
    ///
    /// # Errors
    /// If the file is something else or belongs to another search; as the end of a sentence.
    pub fn read(text: &str, search: &str, jobs: Option<u64>) -> Result<SearchState, String> {
        let state: SearchState = serde_json::from_str(text)
            .map_err(|_| "the file is no state of a search; give a new one".to_string())?;
        if state.filemap_search != STATE_VERSION {
            return Err("the file is of another version of filemap; give a new one".to_string());
        }
        if state.search != search {
            return Err(format!(
                "the file is of another search: {}; give its flags, or a new file",
                state.search
            ));
        }
        let drawn = state.found.drawn;
        if let Some(jobs) = jobs.filter(|&jobs| jobs < drawn) {
            return Err(format!(
                "{drawn} jobs were tried already; give --jobs more than that in place of {jobs}"
            ));
        }
        Ok(state)
    }

    /// Whether it contains completed rounds only.
    pub(super) fn is_whole(&self) -> bool {
        self.found.drawn.is_multiple_of(ROUND_JOBS)
    }
}
