//! What is known of the jobs of a round while it runs, so that a search that is stopped in it loses
//! little.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::found::{Fate, Found, Known};
use super::state::State;
use crate::error::Error;

/// How often the state is written.
const SAVED_EVERY: Duration = Duration::from_secs(2);

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

/// Writes down what a search finds, every few seconds.
pub struct Ledger<'a> {
    /// Which search it is.
    search: &'a str,
    keeper: &'a dyn Keeper,
    saved: Mutex<Instant>,
}

/// What is known of a round so far.
pub struct Round<'a> {
    ledger: &'a Ledger<'a>,
    /// What the rounds before have found.
    before: &'a Found,
    known: Mutex<Vec<Known>>,
}

impl<'a> Ledger<'a> {
    pub fn new(search: &'a str, keeper: &'a dyn Keeper) -> Self {
        if keeper.path().is_none() {
            let how = "with --state FILE the same command goes on where the search was stopped";
            keeper.leave_word(format!("nothing is kept of this search; {how}"));
        }
        Ledger { search, keeper, saved: Mutex::new(Instant::now()) }
    }

    /// A round of `jobs` behind what was found `before`, of which something may be `known`.
    pub fn round(&'a self, before: &'a Found, jobs: usize, mut known: Vec<Known>) -> Round<'a> {
        known.resize(known.len().max(jobs), Known::Nothing);
        Round { ledger: self, before, known: Mutex::new(known) }
    }

    /// Writes what whole rounds have found, and what is known of the one behind them.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, found: &Found, known: &[Known]) -> Result<(), Error> {
        if self.keeper.path().is_none() {
            return Ok(());
        }
        let end = known.iter().rposition(|known| *known != Known::Nothing).map_or(0, |at| at + 1);
        let known = &known[..end];
        self.keeper.write(&State::of(self.search, found, known).text())?;
        self.tell_kept(found, known);
        Ok(())
    }

    /// Leaves word of what is kept, for a signal that ends the command.
    pub fn tell_kept(&self, found: &Found, known: &[Known]) {
        let Some(path) = self.keeper.path() else { return };
        let tried = known.iter().filter(|known| **known != Known::Nothing).count();
        self.keeper.leave_word(match found.drawn + tried as u64 {
            0 => format!("nothing is kept of this search yet in '{path}'"),
            jobs => {
                format!("{jobs} jobs are kept in '{path}'; the same command goes on from there")
            }
        });
    }

    /// Whether it is time to write.
    fn is_due(&self) -> bool {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = saved.elapsed() >= SAVED_EVERY;
        if is_due {
            *saved = Instant::now();
        }
        is_due
    }
}

impl Round<'_> {
    /// What is known of a job by its place in the round.
    pub fn known(&self, at: usize) -> Known {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)[at]
    }

    /// Enters what became of the job at this place.
    ///
    /// # Errors
    /// When the state is written, and cannot be.
    pub fn enter(&self, at: usize, fate: &Fate) -> Result<(), Error> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known[at] = if matches!(fate, Fate::Same) { Known::Same } else { Known::Tried };
        // Under the lock: what is written later knows more.
        if self.ledger.is_due() { self.ledger.save(self.before, &known) } else { Ok(()) }
    }

    /// What is known of its jobs.
    pub fn into_known(self) -> Vec<Known> {
        self.known.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
