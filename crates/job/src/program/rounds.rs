//! How often a thread repeats its steps.

use serde::{Deserialize, Serialize};

use super::names::with_key_error;
use super::spec::ThreadSpec;
use crate::Error;
use crate::bounds::{MAX_ACCESSES, MAX_RUN_NS};
use crate::limits::{duration, within};

/// How often a thread repeats its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rounds {
    /// This number of times, at least 1.
    Times(u64),
    /// Until this time has passed, in nanoseconds. The access in progress is completed.
    For(u64),
}

impl Rounds {
    /// Whether another round begins after `done` rounds.
    pub fn begins(self, done: u64) -> bool {
        match self {
            Rounds::Times(times) => done < times,
            Rounds::For(_) => true,
        }
    }

    /// Whether it is limited by time.
    pub fn is_timed(self) -> bool {
        matches!(self, Rounds::For(_))
    }

    /// End time of a thread that began at `began_ns`; `u64::MAX` if not limited by time.
    pub fn end_ns(self, began_ns: u64) -> u64 {
        match self {
            Rounds::Times(_) => u64::MAX,
            Rounds::For(ns) => began_ns.saturating_add(ns),
        }
    }
}

impl ThreadSpec {
    /// Its name as table number `at`, from 0.
    pub(crate) fn called(&self, at: usize) -> String {
        self.name.clone().unwrap_or((at + 1).to_string())
    }

    /// Maximum random start delay, in nanoseconds.
    pub(super) fn valid_stagger_ns(&self) -> Result<u64, Error> {
        let valid = duration("stagger", &self.stagger, 0, MAX_RUN_NS);
        Ok(valid.map_err(with_key_error)?.unwrap_or(0))
    }

    /// How often it repeats its steps.
    pub(super) fn rounds(&self) -> Result<Rounds, Error> {
        let lasts = duration("for", &self.lasts, 1, MAX_RUN_NS).map_err(with_key_error)?;
        match (self.repeat, lasts) {
            (Some(_), Some(_)) => {
                let (key, other, remedy) = ("repeat", "'for'", "give one of them");
                Err(Error::KeyConflict { key, other, remedy })
            }
            (None, Some(ns)) => Ok(Rounds::For(ns)),
            (times, None) => {
                let times = within("repeat", times.unwrap_or(1), 1, MAX_ACCESSES);
                times.map(Rounds::Times).map_err(with_key_error)
            }
        }
    }
}
