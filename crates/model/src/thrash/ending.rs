//! How a job ends.

use std::fmt;

use crate::mm::mmap_lock::TaskId;

/// How a job ended whose counts are to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As it was asked for.
    Complete,
    /// A charge could not be met, and nothing can be reclaimed: all that is cached is locked.
    NoProgress {
        /// Pages that are locked.
        locked: u64,
        /// Windows that are being read.
        windows: u64,
    },
    /// A charge could not be met, and reclaim finds nothing.
    OutOfMemory {
        /// Pages cached.
        cached: u64,
        /// Pages charged for other things.
        other: u64,
    },
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Complete => write!(f, "complete"),
            Ending::NoProgress { locked, windows } => write!(
                f,
                "no progress: all {locked} cached pages are locked, as {windows} windows are being \
                 read; raise memory.max, or lower --threads or --read-ahead-kb"
            ),
            Ending::OutOfMemory { cached, other } => write!(
                f,
                "out of memory with {cached} pages cached and {other} charged for other things; \
                 raise memory.max"
            ),
        }
    }
}

/// Who holds what, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The task.
    pub task: TaskId,
    /// What it holds.
    pub holds: &'static str,
    /// What it waits for.
    pub waits_for: &'static str,
}

/// Why a job could not be run, or has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A number that has to be 1 or more.
    #[error("0 is not allowed for {what}; give 1 or more")]
    Zero {
        /// Of what.
        what: &'static str,
    },
    /// The limits are the wrong way round.
    #[error("memory.high of {high} pages is above memory.max of {max}; give a lower one")]
    HighAboveMax {
        /// `memory.high`, in pages.
        high: u64,
        /// `memory.max`, in pages.
        max: u64,
    },
    /// Not even one window fits.
    #[error("{what} of {limit} pages is less than one readahead window of {window}; raise it")]
    BelowWindow {
        /// Which limit.
        what: &'static str,
        /// In pages.
        limit: u64,
        /// Pages of a window.
        window: u64,
    },
    /// Nothing will ever happen any more.
    #[error("deadlock at {at_ns} ns: {}", names(.holders))]
    Deadlock {
        /// When.
        at_ns: u64,
        /// The tasks.
        holders: Vec<Holder>,
    },
}

/// The first of them in words.
fn names(holders: &[Holder]) -> String {
    let words = holders.iter().take(8).map(|holder| {
        let Holder { task, holds, waits_for } = holder;
        format!("task {task} holds {holds} and waits for {waits_for}")
    });
    words.collect::<Vec<_>>().join("; ")
}
