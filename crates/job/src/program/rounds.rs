//! How often a thread takes its steps.

use serde::{Deserialize, Serialize};

use super::names::keyed;
use super::spec::ThreadSpec;
use crate::Error;
use crate::bounds::{MAX_ACCESSES, MAX_RUN_NS};
use crate::limits::{duration, within};

/// How often a thread takes its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rounds {
    /// So many times: 1 or more.
    Times(u64),
    /// Again and again until so much of its time is over, in nanoseconds. It ends with the access
    /// that it is at then.
    For(u64),
}

impl Rounds {
    /// Whether another round begins, after so many.
    pub fn begins(self, done: u64) -> bool {
        match self {
            Rounds::Times(times) => done < times,
            Rounds::For(_) => true,
        }
    }

    /// Whether a time ends them.
    pub fn is_timed(self) -> bool {
        matches!(self, Rounds::For(_))
    }

    /// When a thread has to end that began at `began_ns`: never where that is not known before.
    pub fn end_ns(self, began_ns: u64) -> u64 {
        match self {
            Rounds::Times(_) => u64::MAX,
            Rounds::For(ns) => began_ns.saturating_add(ns),
        }
    }
}

impl ThreadSpec {
    /// What it is called where it is number `at` of its tables, from 0.
    pub(crate) fn called(&self, at: usize) -> String {
        self.name.clone().unwrap_or((at + 1).to_string())
    }

    /// Within which time it begins.
    pub(super) fn valid_stagger_ns(&self) -> Result<u64, Error> {
        let valid = duration("stagger", &self.stagger, 0, MAX_RUN_NS);
        Ok(valid.map_err(keyed)?.unwrap_or(0))
    }

    /// How often it takes its steps.
    pub(super) fn rounds(&self) -> Result<Rounds, Error> {
        let lasts = duration("for", &self.lasts, 1, MAX_RUN_NS).map_err(keyed)?;
        match (self.repeat, lasts) {
            (Some(_), Some(_)) => {
                let (key, other, remedy) = ("repeat", "'for'", "give one of them");
                Err(Error::KeyConflict { key, other, remedy })
            }
            (None, Some(ns)) => Ok(Rounds::For(ns)),
            (times, None) => {
                let times = within("repeat", times.unwrap_or(1), 1, MAX_ACCESSES);
                times.map(Rounds::Times).map_err(keyed)
            }
        }
    }
}
