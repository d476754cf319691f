//! Who wants a search: the user, who may interrupt it, and may name a file for its state.

use std::fs;

use filemap_job::shell_word;
use filemap_study::engine::Engines;
use filemap_study::input;
use filemap_study::search::{Found, Keeper, Searching, State};

use crate::error::Error;
use crate::interrupt::Asked;
use crate::output::Target;

/// Longest state, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The user, and the file with the state of the search.
pub struct Kept {
    pub asked: Asked,
    pub state: Option<String>,
}

impl Keeper for Kept {
    fn times(&self) -> u32 {
        self.asked.times()
    }

    fn leave_word(&self, word: String) {
        self.asked.leave_word(word);
    }

    fn path(&self) -> Option<&str> {
        self.state.as_deref()
    }

    fn write(&self, state: &str) -> Result<(), Error> {
        self.state.iter().try_for_each(|path| Target::open(path)?.write(state.as_bytes()))
    }
}

impl Kept {
    /// What is in the file for `search`; nothing where there is no file yet, or an empty one.
    ///
    /// # Errors
    /// A file of something else, or of another search.
    pub fn read(&self, search: &Searching<'_, impl Engines + Sync>) -> Result<Found, Error> {
        let is_there = |path: &&String| fs::metadata(path).is_ok_and(|data| data.len() > 0);
        let Some(path) = self.state.as_ref().filter(is_there) else { return Ok(Found::default()) };
        let refused =
            |problem: String| Error::Usage(format!("--state {}: {problem}", shell_word(path)));
        let text = input::read("state of a search", path, MAX_BYTES)?;
        let state = State::read(&text, &search.name, search.jobs).map_err(refused)?;
        let broken = "its jobs do not show what it says of them; give a new file";
        search.resumed(state)?.ok_or_else(|| refused(broken.to_string()))
    }
}
