//! One run of a job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cached::Cached;
use super::counters::Counters;
use crate::job::Job;
use crate::waits::{Latency, Wait};

/// One run of a job. Values that the engine cannot see are `None`, `null` in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Run {
    /// Seed of random patterns; in JSON also as text.
    #[serde(flatten, with = "crate::seed")]
    #[schemars(with = "crate::seed::SeedTwice")]
    pub seed: u64,
    /// Elapsed time in nanoseconds: measured, or predicted by the model.
    pub elapsed_ns: Option<u64>,
    /// Counters of the whole run.
    pub counters: Counters,
    /// Pages of all files in the page cache at the end.
    #[serde(default)]
    pub cached: Cached,
    /// Each file, in the order of the job file. Like mappings and threads, empty for a job with a
    /// single mapping.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files: Vec<FileRun>,
    /// Each mapping, in the order of the job file.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub mappings: Vec<MappingRun>,
    /// Each thread, in the order of the job file.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub threads: Vec<ThreadRun>,
    /// Each phase, thread by thread; empty for a job with a single mapping and phase. For a thread
    /// that repeats its phases, the total over all rounds.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub phases: Vec<PhaseRun>,
    /// Time that threads spent running and waiting, by [`crate::waits::Cause`], if there are
    /// several threads. Causes that are zero or unknown are left out. A kernel only reports waits
    /// for `mmap_lock`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
    /// Duration of calls that change mappings, if there are several threads, with the
    /// [`crate::waits::Call`] in place of the cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Wait>,
    /// Latencies of faults, from the access until its page is mapped. Only in the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<Latency>,
    /// Latencies of `read(2)` calls. Only in the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Latency>,
    /// Latencies of queries: what a thread with `sleep_ns` does between two sleeps. Only in the
    /// model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries: Option<Latency>,
    /// Time during which a kernel reported `waits`, in nanoseconds, if not the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced_ns: Option<u64>,
    /// Changes of system-wide `/proc/vmstat` counters during the run, caused by any process. Only
    /// on a kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmstat: Option<BTreeMap<String, i64>>,
}

impl Run {
    /// Converts the run of `job` from the engine's form to the record's.
    pub fn into_recorded(self, job: &Job) -> Run {
        if job.is_single_mapping() {
            return self.merge_single_mapping(job);
        }
        if job.is_counted() { self.by_table(job) } else { self }
    }

    /// Reduces the run of a job with a single mapping: the figures of its file, mapping and thread
    /// are the run's.
    fn merge_single_mapping(self, job: &Job) -> Run {
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

/// One file. Values that the engine cannot see are `null`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileRun {
    /// Name of the file.
    pub name: String,
    /// Number of its pages that were read.
    pub data_pages_read: Option<u64>,
    /// Those among them in holes, as far as the engine knows; not serialized.
    #[serde(skip)]
    pub hole_pages: u64,
    /// Faults on it that missed the page cache.
    pub major_faults: Option<u64>,
    /// Number of its pages that were evicted.
    pub evicted_pages: Option<u64>,
    /// Number of its pages in the page cache at the end.
    pub cached: Option<u64>,
    /// Location of these pages in the file; omitted if a table declares several files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_parts: Option<Cached>,
}

impl FileRun {
    /// The sum over `files`; empty if any of them lacks the location.
    pub fn sum_cached(files: &[FileRun]) -> Cached {
        let parts = files.iter().map(|file| file.cached_parts.unwrap_or_default());
        parts.reduce(Cached::and).unwrap_or_default()
    }
}

/// Accesses through one mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MappingRun {
    /// Name of the mapping.
    pub name: String,
    /// Counters of the mapping.
    pub counters: Counters,
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThreadRun {
    /// Name of the thread.
    pub name: String,
    /// Time until the end of its last phase, in nanoseconds; `null` if unknown.
    pub elapsed_ns: Option<u64>,
    /// Counters of the thread.
    pub counters: Counters,
}

/// One phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PhaseRun {
    /// Name of its thread; empty for a job with a single mapping.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub thread: String,
    /// Description, such as `map left`. For a job with a single mapping: the workload, or the path
    /// of the list.
    pub does: String,
    /// Elapsed time in nanoseconds; `null` if unknown.
    pub elapsed_ns: Option<u64>,
    /// Counters of the phase.
    pub counters: Counters,
}
