//! The file in which a search keeps what it has found, so that a further one goes on from there.

use std::collections::BTreeMap;
use std::fs;

use filemap_job::JobSpec;
use serde::{Deserialize, Serialize};

use super::found::{Found, Kept};
use super::ledger::{self, Known};
use super::{ROUND, Search};
use crate::error::Error;
use crate::output::Target;
use filemap_study::input;

/// Longest state, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The form of the file.
const FORM: u32 = 2;

/// The file of a search, which says of itself what it looks for.
pub struct StateFile {
    path: String,
    search: String,
}

/// What is in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    filemap_search: u32,
    /// The command, and the version of filemap, whose model and jobs it depends on.
    search: String,
    drawn: u64,
    left_out: u64,
    alike: u64,
    mechanisms: Vec<Mechanism>,
    /// What is known of the jobs of the round behind these, a letter each.
    #[serde(default)]
    begun: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mechanism {
    mechanism: String,
    jobs: u64,
    smallest: JobSpec,
    by_ratio: JobSpec,
    by_cost: JobSpec,
}

impl StateFile {
    /// The file at `path` for the search of `command`, which does not say how long it is.
    pub fn new(path: &str, command: &str) -> Self {
        let search = format!("{command}, filemap {}", env!("CARGO_PKG_VERSION"));
        StateFile { path: path.to_string(), search }
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is in it, of whole rounds and of the jobs of the one behind them; nothing where there
    /// is no file yet, or an empty one.
    ///
    /// # Errors
    /// A file of something else, or of another search.
    pub fn read(&self, search: &Search) -> Result<(Found, Vec<Known>), Error> {
        let is_there = fs::metadata(&self.path).is_ok_and(|data| data.len() > 0);
        if !is_there {
            return Ok((Found::default(), Vec::new()));
        }
        let text = input::read("state of a search", &self.path, MAX_BYTES)?;
        let refused = |problem: String| {
            Error::Usage(format!("--state {}: {problem}", filemap_job::shell_word(&self.path)))
        };
        let state: State = serde_json::from_str(&text)
            .map_err(|_| refused("the file is no state of a search; give a new one".to_string()))?;
        if state.filemap_search != FORM {
            let another = "the file is of another version of filemap; give a new one";
            return Err(refused(another.to_string()));
        }
        if state.search != self.search {
            return Err(refused(format!(
                "the file is of another search: {}; give its flags, or a new file",
                state.search
            )));
        }
        if let Some(jobs) = search.jobs.filter(|&jobs| jobs < state.drawn) {
            return Err(refused(format!(
                "{} jobs were tried already; give --jobs more than that in place of {jobs}",
                state.drawn
            )));
        }
        let broken = || refused("it does not show what it says; give a new file".to_string());
        let begun = ledger::read(&state.begun).ok_or_else(broken)?;
        if !state.drawn.is_multiple_of(ROUND) {
            return Err(broken());
        }
        let specs = state.mechanisms.iter().flat_map(|kept| {
            let specs = [&kept.smallest, &kept.by_ratio, &kept.by_cost];
            specs.map(|spec| (kept.mechanism.clone(), spec.clone()))
        });
        let tried = search.again(specs.collect())?.ok_or_else(broken)?;
        let mut tried = tried.into_iter();
        let mut next = || tried.next().expect("each mechanism has three");
        let kept = state.mechanisms.into_iter().map(|of| {
            let [smallest, by_ratio, by_cost] = [(); 3].map(|()| next());
            (of.mechanism, Kept { jobs: of.jobs, smallest, by_ratio, by_cost })
        });
        let mechanisms: BTreeMap<String, Kept> = kept.collect();
        let State { drawn, left_out, alike, .. } = state;
        Ok((Found { drawn, left_out, alike, mechanisms }, begun))
    }

    /// Puts into it what whole rounds have `found`, and what is `known` of the jobs of the one
    /// behind them, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written; what was in it is still there then.
    pub fn write(&self, found: &Found, known: &[Known]) -> Result<(), Error> {
        let mechanisms = found.mechanisms.iter().map(|(mechanism, kept)| Mechanism {
            mechanism: mechanism.clone(),
            jobs: kept.jobs,
            smallest: kept.smallest.spec.clone(),
            by_ratio: kept.by_ratio.spec.clone(),
            by_cost: kept.by_cost.spec.clone(),
        });
        let state = State {
            filemap_search: FORM,
            search: self.search.clone(),
            drawn: found.drawn,
            left_out: found.left_out,
            alike: found.alike,
            mechanisms: mechanisms.collect(),
            begun: ledger::text(known),
        };
        let text = serde_json::to_string(&state).expect("it has keys that are texts");
        Target::open(&self.path)?.write(format!("{text}\n").as_bytes())
    }
}
