//! The tables of a program as written.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::elf::Elf;
use crate::phase_spec::PhaseSpec;
use crate::size::SizeText;

/// One `[[file]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileSpec {
    /// What other tables call it.
    pub name: String,
    /// Its size. Of an existing file it may be left out, and has to be right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<SizeText>,
    /// The path of an existing file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Without blocks on disk.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sparse: bool,
    /// So many files of that size, each for one thread of a table with the same count. What is
    /// opened and mapped of them is there as often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// What was found at its path: job files do not say it.
    #[serde(skip)]
    pub found: Option<FoundFile>,
}

/// An existing file as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Its size in bytes: at least 1.
    pub size_bytes: u64,
    /// It has no blocks on disk.
    pub sparse: bool,
    /// Its headers, where a mapping is of its segments.
    pub elf: Option<Elf>,
}

/// One `[[open]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OpenSpec {
    /// What other tables call it.
    pub name: String,
    /// The name of its file.
    pub file: String,
    /// Opened with `O_DIRECT`: reads go past the page cache, in blocks of 4 KiB. Mappings of it use
    /// the cache as others do.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
}

/// One `[[mapping]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MappingSpec {
    /// What other tables call it.
    pub name: String,
    /// The name of the open file that it is made from.
    pub open: String,
    /// Where in the file it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<SizeText>,
    /// Its length, up to the end of the file if not given. It may be longer than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub len: Option<SizeText>,
    /// How many pages into its page-table page it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<u64>,
    /// `normal`, `random` or `sequential`, or `hugepage`, or one of those and `hugepage`, joined by
    /// `,`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// The segments of the program or library that its file is, as the loader maps them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elf: bool,
    /// Mapped executable.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exec: bool,
    /// Mapped `MAP_PRIVATE`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Pages of each VMA that it is cut into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<u64>,
    /// Protection of every second VMA: `write` or `exec`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_prot: Option<String>,
}

/// One `[[thread]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ThreadSpec {
    /// Its name; its number from 1 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name of its process: `main` if not given. The others are forked from that one before
    /// the first phase, with what it has open and mapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// So many threads that do the same: with files that are there as often, each with one of its
    /// own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Each of them begins at some time within this, such as `100ms`, which the seed decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stagger: Option<String>,
    /// How often it does all of its phases: once if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u64>,
    /// For how long it does them again and again, such as `10s`, instead of a number.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
    /// What it does, in order.
    pub phase: Vec<ThreadPhaseSpec>,
}

/// One `[[thread.phase]]`: accesses, a call about a mapping or an open file, or something that only
/// takes time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ThreadPhaseSpec {
    /// The name of the mapping to be made, which is then not there from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// The name of the mapping of which all or a part is taken away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmap: Option<String>,
    /// The name of a barrier: it waits there until all threads have come that name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barrier: Option<String>,
    /// Forks a child that ends at once, and waits for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fork: bool,
    /// Nanoseconds that it sleeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep_ns: Option<u64>,
    /// The name of the mapping that is accessed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping: Option<String>,
    /// The name of the open file that is read with `read(2)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// Advice for the mapping: `normal`, `random`, `sequential`, `hugepage`, `nohugepage`,
    /// `willneed`, `dontneed`, `cold`, `pageout` or `populate-read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub madvise: Option<String>,
    /// What the mapping may be used for besides reading: `write`, `exec`, or `as-mapped` for what
    /// it was mapped for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mprotect: Option<String>,
    /// Advice for the open file: `normal`, `random`, `sequential`, `noreuse`, `willneed` or
    /// `dontneed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fadvise: Option<String>,
    /// Where in the open file the part begins that is read; where the part of a mapping or an open
    /// file begins that advice, protection or `unmap` is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<SizeText>,
    /// How long that part is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub len: Option<SizeText>,
    /// The accesses write.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub write: bool,
    /// Nanoseconds between two accesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_ns: Option<u64>,
    /// Access pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Number of accesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses: Option<u64>,
    /// Number of accesses as a fraction of the mapping's pages, or of the bytes that are read; 0.01
    /// if neither is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// Path of a list of page indexes of the mapping, one a line, instead of a pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses_file: Option<String>,
    /// Pages of a mapping, in order of access, instead of a pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Arc<Vec<u64>>>,
    /// Where in an open file each block is read, in bytes, instead of a pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offsets: Option<Arc<Vec<u64>>>,
    /// Seed of random patterns; the job's if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// `seed` in decimal digits, for readers of JSON that round large numbers; takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_text: Option<String>,
    /// Size of a read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bs: Option<SizeText>,
    /// Text of `accesses_file`, which the caller reads.
    #[serde(skip)]
    pub accesses_text: Option<String>,
    /// Phases of other threads that it waits for before it begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<AfterSpec>,
}

/// A phase of another thread, which ends before one begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AfterSpec {
    /// The name of the thread.
    pub thread: String,
    /// The phase, counted from 1.
    pub phase: u64,
}

impl ThreadPhaseSpec {
    /// Its accesses, without the mapping or open file that they are of.
    pub(super) fn accesses(&self) -> PhaseSpec {
        PhaseSpec {
            workload: self.workload.clone(),
            accesses: self.accesses,
            fraction: self.fraction,
            accesses_file: self.accesses_file.clone(),
            seed: self.seed,
            seed_text: self.seed_text.clone(),
            bs: self.bs.clone(),
            accesses_text: self.accesses_text.clone(),
        }
    }

    /// Whether it accesses pages or bytes, as opposed to a call or a pause.
    pub fn has_accesses(&self) -> bool {
        self.workload.is_some()
            || self.accesses_file.is_some()
            || self.pages.is_some()
            || self.offsets.is_some()
    }
}
