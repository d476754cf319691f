//! A program as written: the tables of a job file.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::size::SizeText;
use crate::spec::{PhaseSpec, has_tables, in_one_line};

/// A program as written. What is `None` was not given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ProgramSpec {
    /// Engine: `model` or `kernel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// How many runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// Rules of the model: `6.12`, `6.18` or `host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Path of a kernel image to boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Directory with the modules of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modules: Option<String>,
    /// Patch series on top, joined by `,` or `+`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    /// Path of a machine profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Seed of random patterns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Existing files are dropped from the page cache for a real kernel, even where much of them
    /// is cached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cold: Option<bool>,
    /// RAM of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ram: Option<SizeText>,
    /// Size of the page cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_limit: Option<SizeText>,
    /// `memory.high` of the cgroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_high: Option<SizeText>,
    /// `memory.max` of the cgroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_max: Option<SizeText>,
    /// Readahead size in KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead_kb: Option<u64>,
    /// Fault-around size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault_around: Option<SizeText>,
    /// Architecture: `x86-64` or `arm64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Base page size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_size: Option<SizeText>,
    /// Filesystem: `ext4`, `xfs` or `base-pages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs: Option<String>,
    /// Memory that the program holds beside its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anonymous: Option<SizeText>,
    /// CPUs that its threads run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u64>,
    /// The files.
    pub file: Vec<FileSpec>,
    /// Open file descriptions.
    pub open: Vec<OpenSpec>,
    /// Mappings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mapping: Vec<MappingSpec>,
    /// What the program does: the phases of each thread.
    pub thread: Vec<ThreadSpec>,
}

/// One `[[file]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct FileSpec {
    /// What other tables call it.
    pub name: String,
    /// Its size, unless it is an existing file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<SizeText>,
    /// The path of an existing file, instead of a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Without blocks on disk.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sparse: bool,
    /// What was found at its path: job files do not say it.
    #[serde(skip)]
    pub found: Option<FoundFile>,
}

/// An existing file as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundFile {
    /// Its size in bytes: at least 1.
    pub size_bytes: u64,
    /// It has no blocks on disk.
    pub sparse: bool,
}

/// One `[[open]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct OpenSpec {
    /// What other tables call it.
    pub name: String,
    /// The name of its file.
    pub file: String,
}

/// One `[[mapping]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ThreadSpec {
    /// Its name; its number from 1 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it does, in order.
    pub phase: Vec<ThreadPhaseSpec>,
}

/// One `[[thread.phase]]`: accesses, or one of `map` and `unmap`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ThreadPhaseSpec {
    /// The name of the mapping to be made, which is then not there from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// The name of the mapping to be taken away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmap: Option<String>,
    /// The name of the mapping that is accessed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping: Option<String>,
    /// The name of the open file that is read with `read(2)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// Advice for the mapping: `normal`, `random`, `sequential`, `hugepage`, `nohugepage`,
    /// `willneed`, `dontneed` or `populate-read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub madvise: Option<String>,
    /// Advice for the open file: `normal`, `random`, `sequential`, `noreuse`, `willneed` or
    /// `dontneed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fadvise: Option<String>,
    /// Where in the open file the part begins that is read; where the part of a mapping or an open
    /// file begins that advice is for.
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
    /// Pages of a mapping, in order of access, instead of a pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Vec<u64>>,
    /// Seed of random patterns; the job's if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Size of a read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bs: Option<SizeText>,
}

impl ThreadPhaseSpec {
    /// Its accesses, as a phase of a job of one file says them.
    pub(super) fn accesses(&self) -> PhaseSpec {
        PhaseSpec {
            workload: self.workload.clone(),
            accesses: self.accesses,
            seed: self.seed,
            bs: self.bs.clone(),
            ..PhaseSpec::default()
        }
    }
}

impl ProgramSpec {
    /// Whether a job file is of this form: it has tables of files, opens, mappings or threads.
    pub fn is_meant(text: &str) -> bool {
        has_tables(text)
    }

    /// The files that exist already: the path of each, and where to put what was found there.
    pub fn existing_files(&mut self) -> impl Iterator<Item = (&str, &str, &mut Option<FoundFile>)> {
        self.file
            .iter_mut()
            .filter_map(|file| Some((file.name.as_str(), file.path.as_deref()?, &mut file.found)))
    }

    /// Reads a job file.
    ///
    /// # Errors
    /// As for [`crate::JobSpec::from_toml`].
    pub fn from_toml(text: &str) -> Result<ProgramSpec, Error> {
        toml::from_str(text).map_err(|error| in_one_line(text, &error))
    }
}
