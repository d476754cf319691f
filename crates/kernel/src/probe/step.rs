//! What the threads of a probe's child do.

use filemap_core::units::PageCount;
use filemap_job::program::{Fadvise, Madvise, Protection, Rounds, StepOf};
use serde::{Deserialize, Serialize};

use super::access::Access;

/// What a thread does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadPlan {
    /// Its process: the first is the one that makes the mappings and forks the others.
    pub process: usize,
    /// When it begins, in nanoseconds.
    pub begins_ns: u64,
    /// How often it takes its steps.
    pub rounds: Rounds,
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// The steps that begin when steps of other threads are done.
    pub after: Vec<(usize, Vec<StepOf>)>,
}

impl ThreadPlan {
    /// A thread of the first process that takes `steps` once, and waits for nobody.
    pub fn once(steps: Vec<Step>) -> ThreadPlan {
        let (rounds, after) = (Rounds::Times(1), Vec::new());
        ThreadPlan { process: 0, begins_ns: 0, rounds, steps, after }
    }
}

/// What a thread does next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// `mmap(2)` of a mapping, by its number.
    Map(usize),
    /// `munmap(2)` of a mapping, by its number.
    Unmap(usize),
    /// `madvise(2)` for a part of a mapping.
    Madvise {
        /// The mapping, by its number.
        mapping: usize,
        /// What it says.
        advice: Madvise,
        /// Its first page, counted from the mapping's first.
        first: PageCount,
        /// Its pages.
        pages: PageCount,
    },
    /// `mprotect(2)` of a part of a mapping.
    Mprotect {
        /// The mapping, by its number.
        mapping: usize,
        /// What it may be used for then.
        protection: Protection,
        /// Its first page, counted from the mapping's first.
        first: PageCount,
        /// Its pages.
        pages: PageCount,
    },
    /// `fork(2)` of a child that ends at once, and is waited for. It has the mappings of files, and
    /// none of the probe's own memory.
    Fork,
    /// Waits at a barrier, by its number, until all of its threads have come.
    Barrier(usize),
    /// Sleeps for so many nanoseconds.
    Sleep(u64),
    /// `posix_fadvise(2)` for a part of an open file.
    Fadvise {
        /// The open file, by its number.
        open: usize,
        /// What it says.
        advice: Fadvise,
        /// Where it begins, in bytes.
        offset_bytes: u64,
        /// How long it is; `None` is up to the end of the file.
        len_bytes: Option<u64>,
    },
    /// Accesses, one after the other.
    Accesses {
        /// The open file that is read from, by its number.
        open: usize,
        /// The mapping whose pages are accessed, by its number, if any are.
        mapping: Option<usize>,
        /// Which.
        accesses: Vec<Access>,
        /// Time that the thread is busy with something else after each of them.
        think_ns: u64,
    },
}

impl Step {
    pub(super) fn accesses(&self) -> &[Access] {
        match self {
            Step::Accesses { accesses, .. } => accesses,
            _ => &[],
        }
    }

    /// Whether the thread is busy with something else between its accesses.
    pub(super) fn thinks(&self) -> bool {
        matches!(self, Step::Accesses { think_ns: 1.., .. })
    }
}
