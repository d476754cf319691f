//! Jobs with tables: files, open file descriptions, mappings, and threads with phases.
//!
//! A [`JobSpec`] is the job as written; [`JobSpec::validate`] resolves its names and values
//! to a [`Job`].

mod access;
mod actions;
mod advice;
mod advice_override;
mod barriers;
mod count_expansion;
mod error;
mod keys;
mod layout;
mod mapped_parts;
mod mapping_tracker;
mod names;
mod phase_keys;
mod reads;
mod rounds;
mod spec;
mod step;
mod step_edit;
mod step_order;
mod thrash;
mod threads;
mod touched_pages;
mod used_parts;
mod validate;

pub use self::access::Access;
pub use filemap_core::address::protection::Protection;
use serde::{Deserialize, Serialize};

use crate::elf::Segment;
pub use crate::job::{Job, SourceTables};
use crate::parts::{File, Mapping};
use crate::random::Rng;
pub use crate::workload::THRASH;

pub use self::advice::{Fadvise, Madvise};
pub use self::error::ProgramError;
pub use self::keys::{ExistingFile, JobSpec};
pub use self::mapped_parts::MappedParts;
pub use self::reads::DIRECT_BLOCK_BYTES;
pub use self::rounds::Rounds;
pub use self::spec::{
    AfterSpec, FileSpec, FoundFile, MappingSpec, OpenSpec, ThreadPhaseSpec, ThreadSpec,
};
pub use self::step::ProgramStep;
pub use self::step_edit::StepEdit;
pub use self::step_order::ThreadStep;
pub use self::thrash::change_protection;
pub use self::used_parts::{UsedPart, UsedParts};

/// 2^64 divided by the golden ratio: spreads the seeds of neighbouring threads.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A barrier that threads wait at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// Name in steps.
    pub name: String,
    /// Number of threads that must arrive before all continue.
    pub threads: usize,
}

/// A thread with its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Name. Default: its number, from 1.
    pub name: String,
    /// Index of its process.
    pub process: usize,
    /// Maximum random start delay, in nanoseconds.
    pub stagger_ns: u64,
    /// How often it repeats its steps.
    pub rounds: Rounds,
    /// The steps of a round, in order: at least one.
    pub steps: Vec<ProgramStep>,
    /// The steps that depend on steps of other threads, in order: index and dependencies. There are
    /// no circular dependencies.
    pub after: Vec<(usize, Vec<ThreadStep>)>,
}

/// A file with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// Name in other tables.
    pub name: String,
    /// The file.
    pub file: File,
}

/// An open file description, as created by `open(2)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Name in other tables.
    pub name: String,
    /// Index of the file.
    pub file: usize,
    /// Opened with `O_DIRECT`: reads bypass the page cache.
    pub direct: bool,
}

/// A mapping with its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedMapping {
    /// Name in other tables.
    pub name: String,
    /// Index of the open file.
    pub open: usize,
    /// The mapping. It may be longer than the file; touching a page beyond the end of the file is
    /// SIGBUS. With segments only its length (the sum of theirs), advice and shift are used.
    pub mapping: Mapping,
    /// ELF segments of a program or library, each a VMA at its own address; empty if a single range
    /// of the file is mapped.
    pub segments: Vec<Segment>,
    /// Whether it exists before the first step.
    pub at_start: bool,
}

impl Thread {
    /// A thread of the first process that runs `steps` once without dependencies.
    pub fn from_steps(steps: Vec<ProgramStep>) -> Thread {
        Thread {
            name: "1".to_string(),
            process: 0,
            stagger_ns: 0,
            rounds: Rounds::Times(1),
            steps,
            after: Vec::new(),
        }
    }

    /// Start delay, as thread `number` of a program with this `seed`, in nanoseconds.
    pub fn begins_ns(&self, number: usize, seed: u64) -> u64 {
        match self.stagger_ns {
            0 => 0,
            stagger_ns => {
                let mut rng = Rng(seed ^ (number as u64 + 1).wrapping_mul(SPREAD));
                rng.below(stagger_ns)
            }
        }
    }

    /// Whether its steps include accesses.
    pub fn has_accesses(&self) -> bool {
        self.steps.iter().any(|step| step.accesses() > 0)
    }
}
