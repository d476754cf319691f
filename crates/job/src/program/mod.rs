//! Jobs shaped like programs: files, open file descriptions, mappings, and threads in phases.
//!
//! A [`ProgramSpec`] is a job file with tables; [`ProgramSpec::validate`] makes a [`Job`] of
//! it, in which names have become indexes and every value is resolved.

mod access;
mod actions;
mod advice;
mod advised;
mod after;
mod barriers;
mod counted;
mod error;
mod keys;
mod mapped_parts;
mod names;
mod of_thrash;
mod phase_keys;
mod placed;
mod reads;
mod rounds;
mod spec;
mod step;
mod there;
mod threads;
mod touched_pages;
mod used_parts;
mod validate;

pub use self::access::Access;
pub use filemap_core::address::protection::Protection;
use serde::{Deserialize, Serialize};

use crate::elf::Segment;
pub use crate::job::{Job, TableOf};
use crate::parts::{File, Mapping};
use crate::random::Rng;
pub use crate::workload::THRASH;

pub use self::advice::{Fadvise, Madvise};
pub use self::after::StepOf;
pub use self::error::ProgramError;
pub use self::keys::{ExistingFile, ProgramSpec};
pub use self::mapped_parts::MappedParts;
pub use self::of_thrash::change_protection;
pub use self::reads::DIRECT_BLOCK_BYTES;
pub use self::rounds::Rounds;
pub use self::spec::{
    AfterSpec, FileSpec, FoundFile, MappingSpec, OpenSpec, ThreadPhaseSpec, ThreadSpec,
};
pub use self::step::ProgramStep;
pub use self::used_parts::{UsedPart, UsedParts};

/// An odd number that is far from every small one: neighbouring threads draw different numbers.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Where threads wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// What steps call it.
    pub name: String,
    /// How many threads have to come before all go on.
    pub threads: usize,
}

/// A thread with its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramThread {
    /// Its name: its number from 1 where it has none.
    pub name: String,
    /// Its process, as an index.
    pub process: usize,
    /// It begins at some time within so many nanoseconds.
    pub stagger_ns: u64,
    /// How often it takes its steps.
    pub rounds: Rounds,
    /// What it does in a round, in order: at least one step.
    pub steps: Vec<ProgramStep>,
    /// The steps that wait for steps of other threads before they begin, in order: each as an
    /// index, with what it waits for. No steps wait for each other in a circle.
    pub after: Vec<(usize, Vec<StepOf>)>,
}

/// A file with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// What other tables call it.
    pub name: String,
    /// The file.
    pub file: File,
}

/// An open file description: what `open(2)` makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// What other tables call it.
    pub name: String,
    /// The file, as an index.
    pub file: usize,
    /// Its reads go past the page cache.
    pub direct: bool,
}

/// A mapping with its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedMapping {
    /// What other tables call it.
    pub name: String,
    /// The open file that it is made from, as an index.
    pub open: usize,
    /// The mapping. It may be longer than the file; a touch beyond the file's end is SIGBUS. Where
    /// it has segments only its length, advice and shift count: the length is that of all of them.
    pub mapping: Mapping,
    /// The segments of a program or library that are mapped, each as a VMA at its own place; none
    /// where one part of the file is.
    pub segments: Vec<Segment>,
    /// Whether it is there before the first step.
    pub at_start: bool,
}

impl ProgramThread {
    /// A thread of the first process that takes `steps` once, and waits for nobody.
    pub fn once(steps: Vec<ProgramStep>) -> ProgramThread {
        ProgramThread {
            name: "1".to_string(),
            process: 0,
            stagger_ns: 0,
            rounds: Rounds::Times(1),
            steps,
            after: Vec::new(),
        }
    }

    /// When it begins as thread number `number` of a program with this `seed`, in nanoseconds.
    pub fn begins_ns(&self, number: usize, seed: u64) -> u64 {
        match self.stagger_ns {
            0 => 0,
            stagger_ns => {
                let mut rng = Rng(seed ^ (number as u64 + 1).wrapping_mul(SPREAD));
                rng.below(stagger_ns)
            }
        }
    }

    /// Whether a round of it has accesses.
    pub fn has_accesses(&self) -> bool {
        self.steps.iter().any(|step| step.accesses() > 0)
    }
}
