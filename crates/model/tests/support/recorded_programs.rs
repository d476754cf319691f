//! Runs of programs on a real kernel, whose files share one memory limit:
//! `data/measured-6.12-programs.json`.

use filemap_job::program::{Job, JobSpec};
use filemap_job::{FileRun, Run};
use serde::{Deserialize, Serialize};

/// One program, and the result of each of its runs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    pub name: String,
    pub program: JobSpec,
    pub repeats: Vec<Counts>,
}

/// Counts of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    pub data_pages_read: u64,
    pub major_faults: u64,
    /// By the clock of the machine.
    pub elapsed_ns: u64,
    pub files: Vec<FileRun>,
}

impl Recording {
    /// The program for the rules of `kernel`; `host` stands for `release`.
    pub fn program(&self, kernel: &str, release: Option<&str>) -> Job {
        let spec = JobSpec { kernel: Some(kernel.into()), ..self.program.clone() };
        spec.validate(release).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

impl Counts {
    /// The counts of a run that has all of them.
    pub fn of(run: &Run) -> Counts {
        let known = |count: Option<u64>| count.expect("pages, faults and time are known");
        Counts {
            data_pages_read: known(run.counters.data_pages_read),
            major_faults: known(run.counters.major_faults),
            elapsed_ns: known(run.elapsed_ns),
            files: run.files.clone(),
        }
    }
}
