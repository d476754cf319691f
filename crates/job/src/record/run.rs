//! One run of a job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cached::Cached;
use super::counters::Counters;
use crate::job::Job;
use crate::waits::Wait;

/// One run of a job. What the engine cannot see is `None`, and `null` in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Run {
    /// The seed of its random patterns; in JSON also as text.
    #[serde(flatten, with = "crate::seed")]
    #[schemars(with = "crate::seed::SeedTwice")]
    pub seed: u64,
    /// Time for all of it, in nanoseconds: measured, or by the model predicted.
    pub elapsed_ns: Option<u64>,
    /// What it counted in all.
    pub counters: Counters,
    /// What the page cache held at the end of all files.
    #[serde(default)]
    pub cached: Cached,
    /// Each file, in the order of the job file; as mappings and threads, none of a job of flags.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files: Vec<FileRun>,
    /// Each mapping, in the order of the job file.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub mappings: Vec<MappingRun>,
    /// Each thread, in the order of the job file.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub threads: Vec<ThreadRun>,
    /// Each phase, in order, one thread after the other; none of a job of flags that has one. Of a
    /// thread that repeats its phases it is what all rounds did together.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub phases: Vec<PhaseRun>,
    /// Where the time of several threads went, by [`crate::waits::Cause`]; those that took none, or
    /// of which nothing is known, are left out. A kernel tells waits for `mmap_lock` only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
    /// How long calls of several threads took that change what is mapped, by [`crate::waits::Call`]
    /// in place of the cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Wait>,
    /// For how long a kernel told `waits`, in nanoseconds, where it is not all of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced_ns: Option<u64>,
    /// By how much each counter of `/proc/vmstat` changed meanwhile, whoever did it: counters of
    /// the whole machine that changed. For a real kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmstat: Option<BTreeMap<String, i64>>,
}

impl Run {
    /// This run of `job`, as an engine tells it, as a record has it.
    pub fn as_recorded(self, job: &Job) -> Run {
        if job.is_single_mapping() {
            return self.of_single_mapping(job);
        }
        if job.is_counted() { self.by_table(job) } else { self }
    }

    /// The run of a job with a single mapping: what there is one of is the run itself.
    fn of_single_mapping(self, job: &Job) -> Run {
        let mmap_miss = self.phases.last().and_then(|phase| phase.counters.mmap_miss);
        let phases = job.accesses().zip(self.phases);
        let phases = phases.map(|(accesses, phase)| PhaseRun {
            thread: String::new(),
            does: accesses.name(),
            ..phase
        });
        let phases: Vec<PhaseRun> = phases.collect();
        Run {
            elapsed_ns: phases.iter().map(|phase| phase.elapsed_ns).sum(),
            counters: Counters { mmap_miss, ..self.counters },
            phases: if phases.len() > 1 { phases } else { Vec::new() },
            files: Vec::new(),
            mappings: Vec::new(),
            threads: Vec::new(),
            ..self
        }
    }
}

/// What became of one file. What the engine cannot see is `null`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileRun {
    /// Its name.
    pub name: String,
    /// Pages of it that were read.
    pub data_pages_read: Option<u64>,
    /// Faults on it that missed the cache.
    pub major_faults: Option<u64>,
    /// Pages of it that left the cache.
    pub evicted_pages: Option<u64>,
    /// Pages of it that are cached at the end.
    pub cached: Option<u64>,
    /// Where in the file these are; not told of several files of one table together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_parts: Option<Cached>,
}

impl FileRun {
    /// What is cached of all `files`, of which each says where that is; nothing where one does not.
    pub fn cached_of(files: &[FileRun]) -> Cached {
        let of = files.iter().map(|file| file.cached_parts.unwrap_or_default());
        of.reduce(Cached::and).unwrap_or_default()
    }
}

/// What was done through one mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MappingRun {
    /// Its name.
    pub name: String,
    /// What it counted.
    pub counters: Counters,
}

/// What one thread did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThreadRun {
    /// Its name.
    pub name: String,
    /// Time until it had done its last phase, in nanoseconds; `null` where it is not known.
    pub elapsed_ns: Option<u64>,
    /// What it counted.
    pub counters: Counters,
}

/// What one phase did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PhaseRun {
    /// The name of its thread; of a job of flags, which has one, nothing.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub thread: String,
    /// What it did, in words: `map left`. Of a job of flags its workload, or the path of its list.
    pub does: String,
    /// Time for it, in nanoseconds; `null` where it is not known.
    pub elapsed_ns: Option<u64>,
    /// What it counted.
    pub counters: Counters,
}
