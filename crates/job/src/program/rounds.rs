//! How often a thread takes its steps.

use serde::{Deserialize, Serialize};

use super::names::keyed;
use super::spec::ThreadSpec;
use crate::Error;
use crate::bounds::{MAX_ACCESSES, MAX_THRASH_NS};
use crate::limits::{duration, within};

/// How often a thread takes its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rounds {
    /// So many times: 1 or more.
    Times(u64),
    /// As often as it begins before so much of its time is over, in nanoseconds.
    For(u64),
}

impl Rounds {
    /// Whether another round begins, after so many and so much time.
    pub fn begins(self, done: u64, elapsed_ns: u64) -> bool {
        match self {
            Rounds::Times(times) => done < times,
            Rounds::For(ns) => elapsed_ns < ns,
        }
    }
}

impl ThreadSpec {
    /// How often it takes its steps.
    pub(super) fn rounds(&self) -> Result<Rounds, Error> {
        let lasts = duration("for", &self.lasts, 1, MAX_THRASH_NS).map_err(keyed)?;
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
