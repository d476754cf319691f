//! The tables of a job file.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::elf::Elf;
use crate::phase_spec::PhaseSpec;
use crate::size::SizeText;

/// A `[[file]]` table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileSpec {
    /// Name, referred to by other tables.
    pub name: String,
    /// File size. Optional for an existing file, whose size it must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<SizeText>,
    /// Path of an existing file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Sparse: without blocks on disk.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sparse: bool,
    /// Pages that were cached when the program was recorded: pairs of a first page and a number of
    /// pages. They are cached at the beginning with `start = 'recorded'`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<Arc<Vec<[u64; 2]>>>,
    /// Number of identical files, one for each thread of a `[[thread]]` with the same count. Their
    /// opens and mappings are repeated likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// What the caller found at `path`; not part of a job file.
    #[serde(skip)]
    pub found: Option<FoundFile>,
}

/// Size and layout of an existing file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Size in bytes, at least 1.
    pub size_bytes: u64,
    /// It has no blocks on disk.
    pub sparse: bool,
    /// Its holes in whole pages, in order: first byte and the byte after the last.
    pub holes: Vec<Range<u64>>,
    /// ELF headers, if its segments are mapped.
    pub elf: Option<Elf>,
}

/// An `[[open]]` table: an open file description.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OpenSpec {
    /// Name, referred to by other tables.
    pub name: String,
    /// Name of the file.
    pub file: String,
    /// Open with `O_DIRECT`: reads bypass the page cache, in blocks of 4 KiB. Mappings of it use
    /// the cache as usual.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
}

/// A `[[mapping]]` table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MappingSpec {
    /// Name, referred to by other tables.
    pub name: String,
    /// Name of the open file that is mapped.
    pub open: String,
    /// Offset in the file. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<SizeText>,
    /// Length, which may exceed the file. Default: up to the end of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub len: Option<SizeText>,
    /// Offset within its page table, in pages. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<u64>,
    /// madvise(2) advice: `normal`, `random` or `sequential`, `hugepage`, or one of the former and
    /// `hugepage` joined by `,`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Map the ELF segments of the file, as the program loader does.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elf: bool,
    /// Map `PROT_EXEC`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exec: bool,
    /// Map `MAP_PRIVATE`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Split the mapping into VMAs of this many pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<u64>,
    /// Protection of every second VMA of `split`: `write` or `exec`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_prot: Option<String>,
}

/// A `[[thread]]` table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ThreadSpec {
    /// Name. Default: its number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name of its process. Default: `main`. Other processes are forked from `main` before the
    /// first phase and inherit its open files and mappings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// Number of identical threads. Files with the same count are divided among them, one each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Maximum random delay before each thread starts, such as `100ms`, drawn from the seed.
    /// Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stagger: Option<String>,
    /// Number of times that the phases are repeated. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u64>,
    /// Time to repeat the phases for, such as `10s`, instead of `repeat`.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
    /// Its phases, in order.
    pub phase: Vec<ThreadPhaseSpec>,
}

/// A `[[thread.phase]]` table: accesses, a system call on a mapping or an open file, a wait or a
/// sleep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ThreadPhaseSpec {
    /// Name of a mapping to create, which then does not exist at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// Name of a mapping to unmap, in whole or in part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmap: Option<String>,
    /// Name of a barrier: wait until all threads that name it have reached it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barrier: Option<String>,
    /// Fork a child that exits immediately, and wait for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fork: bool,
    /// Time to sleep, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep_ns: Option<u64>,
    /// Size of anonymous memory to allocate and write to. A memory limit charges it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocate: Option<SizeText>,
    /// Size of anonymous memory to free: of what was allocated last, or held at the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<SizeText>,
    /// Name of the mapping to access, or to apply `madvise` or `mprotect` to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping: Option<String>,
    /// Name of the open file to read with `read(2)`, or to apply `fadvise` to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// `madvise(2)` on the mapping: `normal`, `random`, `sequential`, `hugepage`, `nohugepage`,
    /// `willneed`, `dontneed`, `cold`, `pageout` or `populate-read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub madvise: Option<String>,
    /// `mprotect(2)` on the mapping, which stays readable: `write`, `exec`, or `as-mapped` for its
    /// original protection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mprotect: Option<String>,
    /// `posix_fadvise(2)` on the open file: `normal`, `random`, `sequential`, `noreuse`, `willneed`
    /// or `dontneed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fadvise: Option<String>,
    /// Offset of the range that is read, advised, protected or unmapped. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<SizeText>,
    /// Length of that range. Default: up to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub len: Option<SizeText>,
    /// Write to the pages instead of reading them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub write: bool,
    /// Time between two accesses, in nanoseconds. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_ns: Option<u64>,
    /// Access pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Number of accesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses: Option<u64>,
    /// Number of accesses as a fraction of the mapping's pages, or of the bytes in blocks of `bs`.
    /// Default: 0.01.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// Path of a file with page indexes relative to the mapping, one per line, instead of a
    /// pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses_file: Option<String>,
    /// Page indexes relative to the mapping, in order of access, instead of a pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Arc<Vec<u64>>>,
    /// Byte offsets of the reads of an open file, instead of a pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offsets: Option<Arc<Vec<u64>>>,
    /// Seed of random patterns. Default: the job's seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// `seed` in decimal digits, for JSON readers that round large numbers. Takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_text: Option<String>,
    /// Block size of each read. Default: `4k`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bs: Option<SizeText>,
    /// Contents of `accesses_file`, read by the caller.
    #[serde(skip)]
    pub accesses_text: Option<String>,
    /// Phases of other threads that must have ended before this one starts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<AfterSpec>,
}

/// A phase of another thread that must have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AfterSpec {
    /// Name of the thread.
    pub thread: String,
    /// Number of the phase, from 1.
    pub phase: u64,
}

impl ThreadPhaseSpec {
    /// Its accesses, without the name of the mapping or open file.
    pub fn accesses(&self) -> PhaseSpec {
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

    /// Whether it accesses pages or reads bytes, as opposed to a call, a wait or a sleep.
    pub fn has_accesses(&self) -> bool {
        self.workload.is_some()
            || self.accesses_file.is_some()
            || self.pages.is_some()
            || self.offsets.is_some()
    }
}
