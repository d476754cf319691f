//! Summary of the runs of a job.

use serde::{Deserialize, Serialize};

use super::cached::Cached;
use super::counters::PerCounter;
use super::run::{FileRun, Run};
use crate::spread::Spread;

/// Summary over all runs; `None`: no run has the value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Summary {
    /// Each counter.
    #[serde(flatten)]
    pub counters: PerCounter<Option<Spread>>,
    /// Elapsed time, in nanoseconds.
    #[serde(default)]
    pub elapsed_ns: Option<Spread>,
    /// Pages in the page cache at the end.
    #[serde(default)]
    pub cached: CachedSummary,
    /// Each file, in the order of the job file; empty for a job with a single mapping.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files: Vec<FileSummary>,
}

/// [`Cached`], summarized over all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CachedSummary {
    /// Pages that are mapped.
    pub inside: Option<Spread>,
    /// Pages before the first mapped page of their file.
    pub before: Option<Spread>,
    /// Pages after the last mapped page.
    pub after: Option<Spread>,
    /// Pages between mapped parts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub between: Option<Spread>,
}

/// [`FileRun`], summarized over all runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileSummary {
    /// Name of the file.
    pub name: String,
    /// Number of its pages that were read.
    pub data_pages_read: Option<Spread>,
    /// Faults on it that missed the page cache.
    pub major_faults: Option<Spread>,
    /// Number of its pages that were evicted.
    pub evicted_pages: Option<Spread>,
    /// Number of its pages in the page cache at the end.
    pub cached: Option<Spread>,
}

impl Summary {
    /// Summarizes `runs` of one job.
    pub fn from_runs(runs: &[Run]) -> Summary {
        let counters: Vec<_> = runs.iter().map(|run| run.counters).collect();
        let cached = |pages: fn(&Cached) -> Option<u64>| {
            Spread::from_samples(runs.iter().filter_map(|run| pages(&run.cached)))
        };
        let files = runs.first().map_or(&[][..], |run| &run.files);
        let file = |(number, file)| {
            FileSummary::from_runs(file, runs.iter().map(|run| &run.files[number]))
        };
        Summary {
            counters: PerCounter::summary(&counters),
            elapsed_ns: Spread::from_samples(runs.iter().filter_map(|run| run.elapsed_ns)),
            cached: CachedSummary {
                inside: cached(|cached| cached.inside),
                before: cached(|cached| cached.before),
                after: cached(|cached| cached.after),
                between: cached(|cached| cached.between),
            },
            files: files.iter().enumerate().map(file).collect(),
        }
    }
}

impl FileSummary {
    /// Summarizes `file` over all runs.
    fn from_runs<'a>(
        file: &FileRun,
        runs: impl Iterator<Item = &'a FileRun> + Clone,
    ) -> FileSummary {
        let spread_of = |count: fn(&FileRun) -> Option<u64>| {
            Spread::from_samples(runs.clone().filter_map(count))
        };
        FileSummary {
            name: file.name.clone(),
            data_pages_read: spread_of(|file| file.data_pages_read),
            major_faults: spread_of(|file| file.major_faults),
            evicted_pages: spread_of(|file| file.evicted_pages),
            cached: spread_of(|file| file.cached),
        }
    }
}
