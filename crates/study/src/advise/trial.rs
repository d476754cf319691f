//! What was tried, and what the model did with it.

use filemap_job::Run;
use serde::{Deserialize, Serialize};

use super::Change;
use super::answer::Figures;

/// What a run of the model came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Outcome {
    pub data_pages_read: u64,
    /// Of each file of the program.
    pub files: Vec<u64>,
    pub major_faults: u64,
    pub elapsed_ns: u64,
    pub elapsed_ns_at_half_latency: u64,
    pub elapsed_ns_at_double_latency: u64,
}

impl Outcome {
    /// Of a run of a program with so many files, whatever the latency.
    pub(super) fn of(run: &Run, files: usize) -> Outcome {
        let pages = |file: usize| run.files.get(file).and_then(|file| file.data_pages_read);
        let files: Vec<u64> = (0..files).map(|file| pages(file).unwrap_or_default()).collect();
        Outcome {
            data_pages_read: files.iter().sum(),
            files,
            major_faults: run.counters.major_faults.unwrap_or_default(),
            ..Outcome::default()
        }
        .at([run.elapsed_ns.unwrap_or_default(); 3])
    }

    /// With these times at each of [`super::LATENCIES`].
    pub(super) fn at(self, [elapsed_ns, half, double]: [u64; 3]) -> Outcome {
        Outcome {
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

    /// The least and the most of its times.
    pub fn range_ns(&self) -> (f64, f64) {
        let all = self.ns();
        let (least, most) = (all.into_iter().min(), all.into_iter().max());
        (least.unwrap_or(0) as f64, most.unwrap_or(0) as f64)
    }

    /// All that was read, and the time.
    pub fn figures(&self) -> Figures {
        Figures { pages: self.data_pages_read as f64, ns: self.ns().map(|ns| ns as f64) }
    }

    /// What was read of one file, and the time of the whole program.
    pub fn of_file(&self, file: usize) -> Figures {
        Figures { pages: self.files[file] as f64, ..self.figures() }
    }
}

/// One or more changes, and what came of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    pub changes: Vec<Change>,
    pub outcome: Outcome,
}

impl Trial {
    /// What was changed, in words.
    pub fn label(&self) -> String {
        self.labels().join(" + ")
    }

    pub(super) fn labels(&self) -> Vec<String> {
        self.changes.iter().map(Change::label).collect()
    }

    /// How far it reaches: pairs are more to do than anything alone.
    pub(super) fn reach(&self) -> u32 {
        let more = self.changes.len().saturating_sub(1) as u32;
        self.changes.iter().map(Change::reach).sum::<u32>() + 10 * more
    }

    /// Whether a user can do it on the kernel that is there.
    pub fn is_for_users(&self) -> bool {
        self.changes.iter().all(Change::is_for_users)
    }

    /// Whether nothing of it is about another file than this one.
    pub(super) fn is_about(&self, file: usize) -> bool {
        self.changes.iter().all(|change| change.file().is_none_or(|of| of == file))
    }
}
