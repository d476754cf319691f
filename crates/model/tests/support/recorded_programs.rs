//! Runs of programs on a real kernel, whose files share one memory limit:
//! `data/measured-6.12-programs.json`.

use filemap_job::program::{Job, JobSpec};
use filemap_job::{FileRun, Run};
use serde::{Deserialize, Serialize};

/// One program, and what came of it each time that it was run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    pub name: String,
    pub program: JobSpec,
    pub repeats: Vec<Counts>,
}

/// What one run counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    pub data_pages_read: u64,
    pub major_faults: u64,
    /// By the machine's own clock.
    pub elapsed_ns: u64,
    pub files: Vec<FileRun>,
}

impl Recording {
    /// The program for the rules of `kernel`; `release` is what `host` stands for.
    pub fn program(&self, kernel: &str, release: Option<&str>) -> Job {
        let spec = JobSpec { kernel: Some(kernel.into()), ..self.program.clone() };
        spec.validate(release).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

impl Counts {
    /// Those of a run that tells all of them.
    pub fn of(run: &Run) -> Counts {
        let told = |count: Option<u64>| count.expect("pages, faults and time are known");
        Counts {
            data_pages_read: told(run.counters.data_pages_read),
            major_faults: told(run.counters.major_faults),
            elapsed_ns: told(run.elapsed_ns),
            files: run.files.clone(),
        }
    }
}
