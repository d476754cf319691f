//! Compared jobs.

use filemap_job::JobSpec;
use filemap_job::program::Job;

use super::comparison::LogComparison;

/// A compared job, restricted to one of its files.
#[derive(Clone, Copy)]
pub(super) struct ConformCase<'a> {
    /// Name in the report.
    pub(super) name: &'a str,
    /// The job as a job file.
    pub(super) text: &'a str,
    /// The job as written, if it can be shrunk.
    pub(super) spec: Option<&'a JobSpec>,
    pub(super) job: &'a Job,
    pub(super) file: usize,
    pub(super) found: &'a LogComparison,
}

impl ConformCase<'_> {
    pub(super) fn differs(&self) -> bool {
        self.found.mismatches > 0
    }
}
