//! What a search keeps in a file, so that a further one goes on from there: what its whole rounds
//! have found.

use serde::{Deserialize, Serialize};

use super::found::{Found, ROUND};
use crate::error::Error;

/// The form of the file.
const FORM: u32 = 3;

/// Whoever wants a search, and may keep what it finds.
pub trait Keeper: Sync {
    /// How often there was asked for what there is so far.
    fn times(&self) -> u32;

    /// Has `word` said when a signal ends the command.
    fn leave_word(&self, word: String);

    /// Where the state of the search is kept, if it is.
    fn path(&self) -> Option<&str>;

    /// Puts `state` there, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written; what was there is still there then.
    fn write(&self, state: &str) -> Result<(), Error>;
}

/// What is in the file.
#[derive(Serialize, Deserialize)]
pub struct State {
    filemap_search: u32,
    /// The command, and the version of filemap, whose model and jobs it depends on.
    search: String,
    #[serde(flatten)]
    pub(super) found: Found,
}

impl State {
    /// What whole rounds of `search` have `found`.
    pub(super) fn of(search: &str, found: Found) -> State {
        State { filemap_search: FORM, search: search.to_string(), found }
    }

    /// As the file has it.
    pub(super) fn text(&self) -> String {
        let text = serde_json::to_string(self).expect("it has keys that are texts");
        format!("{text}\n")
    }

    /// The state of `search`, which tries so many jobs, in the text of a file.
    ///
    /// # Errors
    /// A file of something else, or of another search; the end of a sentence.
    pub fn read(text: &str, search: &str, jobs: Option<u64>) -> Result<State, String> {
        let state: State = serde_json::from_str(text)
            .map_err(|_| "the file is no state of a search; give a new one".to_string())?;
        if state.filemap_search != FORM {
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

    /// Whether it is of whole rounds.
    pub(super) fn is_whole(&self) -> bool {
        self.found.drawn.is_multiple_of(ROUND)
    }
}
