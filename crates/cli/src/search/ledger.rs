//! What is known of the jobs of a round while it runs, so that a search that is stopped in it loses
//! little.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::found::Found;
use super::state::StateFile;
use super::{Fate, ROUND};
use crate::error::Error;
use crate::interrupt::Asked;

/// How often the state is written.
const SAVED_EVERY: Duration = Duration::from_secs(2);

/// What a round has found of one of its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It was not tried.
    Nothing,
    /// It does not show what is looked for.
    Same,
    /// It was tried. What it shows is not written, so a search that goes on tries it again.
    Tried,
}

impl Known {
    const LETTERS: [(Known, char); 3] =
        [(Known::Nothing, '.'), (Known::Same, '='), (Known::Tried, '!')];

    fn letter(self) -> char {
        Self::LETTERS.into_iter().find(|(known, _)| *known == self).expect("each has one").1
    }

    fn of_letter(letter: char) -> Option<Self> {
        Some(Self::LETTERS.into_iter().find(|(_, own)| *own == letter)?.0)
    }
}

/// What is known of the jobs of a round, as it is written.
pub fn text(known: &[Known]) -> String {
    known.iter().map(|known| known.letter()).collect()
}

/// The same as it is read; `None` for what is of no round.
pub fn read(text: &str) -> Option<Vec<Known>> {
    let known = text.chars().map(Known::of_letter).collect::<Option<Vec<_>>>()?;
    (known.len() as u64 <= ROUND).then_some(known)
}

/// Writes down what a search finds, every few seconds.
pub struct Ledger<'a> {
    state: Option<&'a StateFile>,
    asked: &'a Asked,
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
    /// The ledger of a search that goes on from what is in `state`. When a signal ends the command,
    /// `asked` says what is kept.
    pub fn new(state: Option<&'a StateFile>, asked: &'a Asked) -> Self {
        if state.is_none() {
            let how = "with --state FILE a search that is given again goes on where it was stopped";
            asked.leave_word(format!("nothing is kept of this search; {how}"));
        }
        Ledger { state, asked, saved: Mutex::new(Instant::now()) }
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
        let Some(state) = self.state else { return Ok(()) };
        let end = known.iter().rposition(|known| *known != Known::Nothing).map_or(0, |at| at + 1);
        let known = &known[..end];
        state.write(found, known)?;
        self.tell_kept(found, known);
        Ok(())
    }

    /// Leaves word of what the state file has, for a signal that ends the command.
    pub fn tell_kept(&self, found: &Found, known: &[Known]) {
        let Some(state) = self.state else { return };
        let tried = known.iter().filter(|known| **known != Known::Nothing).count();
        let path = state.path();
        self.asked.leave_word(match found.drawn + tried as u64 {
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
    pub(super) fn enter(&self, at: usize, fate: &Fate) -> Result<(), Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_round_is_read_as_it_is_written() {
        let known = [Known::Same, Known::Nothing, Known::Tried, Known::Same];
        assert_eq!(text(&known), "=.!=");
        assert_eq!(read("=.!="), Some(known.to_vec()));
        assert_eq!(read(""), Some(Vec::new()));
        assert_eq!(read("=x"), None);
        // All of a round may be known before it has ended.
        assert!(read(&"=".repeat(ROUND as usize)).is_some());
        assert_eq!(read(&"=".repeat(ROUND as usize + 1)), None);
    }
}
