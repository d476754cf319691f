//! Jobs that were compared.

use filemap_job::JobSpec;
use filemap_job::program::Job;

use super::comparison::LogComparison;

/// A job that was compared, about one of its files.
#[derive(Clone, Copy)]
pub(super) struct ConformCase<'a> {
    /// What the report calls it.
    pub(super) name: &'a str,
    /// As a job file.
    pub(super) text: &'a str,
    /// As it was written, where that can be made smaller.
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
