//! Outcome of a run in the model.

use filemap_job::Run;
use serde::{Deserialize, Serialize};

use super::answer::TrialFigures;

/// Minimum share of all pages read for a file to count, and of pages or time for a change to be
/// worth naming.
const MIN_SHARE: f64 = 0.01;

/// Outcome of a run in the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct TrialOutcome {
    pub data_pages_read: u64,
    /// Pages read of each file.
    pub files: Vec<u64>,
    pub major_faults: u64,
    pub elapsed_ns: u64,
    pub elapsed_ns_at_half_latency: u64,
    pub elapsed_ns_at_double_latency: u64,
}

impl TrialOutcome {
    /// Outcome of `run` with `files` files and pages of `page_bytes`, the same at every latency.
    /// Pages in holes are not read.
    pub(super) fn from_run(run: &Run, files: usize, page_bytes: u64) -> TrialOutcome {
        let pages = |file: usize| {
            match run.files.get(file) {
                Some(file) => Some(file.data_pages_read? - file.hole_pages),
                // A job with a single mapping has no counters by file.
                None => Some(run.counters.bytes_read? / page_bytes).filter(|_| files == 1),
            }
        };
        let files: Vec<u64> = (0..files).map(|file| pages(file).unwrap_or_default()).collect();
        TrialOutcome {
            data_pages_read: files.iter().sum(),
            files,
            major_faults: run.counters.major_faults.unwrap_or_default(),
            ..TrialOutcome::default()
        }
        .with_times([run.elapsed_ns.unwrap_or_default(); 3])
    }

    /// The outcome with these times at each of [`super::LATENCIES`].
    pub(super) fn with_times(self, [elapsed_ns, half, double]: [u64; 3]) -> TrialOutcome {
        TrialOutcome {
            elapsed_ns,
            elapsed_ns_at_half_latency: half,
            elapsed_ns_at_double_latency: double,
            ..self
        }
    }

    /// Times at each of [`super::LATENCIES`].
    fn ns(&self) -> [u64; 3] {
        [self.elapsed_ns, self.elapsed_ns_at_half_latency, self.elapsed_ns_at_double_latency]
    }

    /// Minimum and maximum of its times.
    pub fn range_ns(&self) -> (f64, f64) {
        let all = self.ns();
        let (least, most) = (all.into_iter().min(), all.into_iter().max());
        (least.unwrap_or(0) as f64, most.unwrap_or(0) as f64)
    }

    /// Pages read of all files, and times.
    pub fn figures(&self) -> TrialFigures {
        TrialFigures { pages: self.data_pages_read as f64, ns: self.ns().map(|ns| ns as f64) }
    }

    /// Pages read of one file, and times of the whole program.
    pub fn file_figures(&self, file: usize) -> TrialFigures {
        TrialFigures { pages: self.files[file] as f64, ..self.figures() }
    }

    /// Whether this outcome of a change saves enough of what `now` reads or takes.
    pub(super) fn is_worth_naming(&self, now: &TrialOutcome) -> bool {
        let saves =
            |own: u64, now: u64| now as f64 - own as f64 >= now as f64 * MIN_SHARE && own < now;
        saves(self.data_pages_read, now.data_pages_read) || saves(self.elapsed_ns, now.elapsed_ns)
    }

    /// Files that count, the most read first.
    pub fn files_that_count(&self) -> Vec<usize> {
        let least = self.data_pages_read as f64 * MIN_SHARE;
        let counts = |file: &usize| self.files[*file] > 0 && self.files[*file] as f64 >= least;
        let mut files: Vec<usize> = (0..self.files.len()).filter(counts).collect();
        files.sort_by_key(|file| std::cmp::Reverse(self.files[*file]));
        files
    }
}
