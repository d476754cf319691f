//! Interface of a series: its jobs and its cells.

use filemap_job::{FolioOps, Job, JobFlags, Record};

use super::cell::Cell;
use crate::engine::Progress;
use crate::error::Error;
use crate::folio_ops::SizeSource;
use crate::footer::Origin;

/// One published patch series.
pub trait Study {
    /// Jobs whose records it needs, in order; may be empty.
    fn jobs(&self) -> Vec<Job> {
        Vec::new()
    }

    /// Folio operations that it runs and that may exceed the available memory, and the flag that
    /// asked for them.
    fn folio_ops(&self) -> Option<(FolioOps, SizeSource)> {
        None
    }

    /// Computes the cells from `records`, one for each of [`Study::jobs`], and from its other work.
    ///
    /// # Errors
    /// If that work fails.
    fn find(&self, records: &[Record], begin: &BeginProgress<'_>) -> Result<SeriesFindings, Error>;
}

/// A study made from options.
pub type StudyResult = Result<Box<dyn Study>, Error>;

/// Starts progress over a number of runs.
pub type BeginProgress<'a> = dyn Fn(u64) -> Box<dyn Progress> + 'a;

/// Cells of a series, and the origin of work that is not a job.
pub type SeriesFindings = (Vec<Cell>, Option<Origin>);

/// Extent of the long studies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StudyLength {
    /// When all series run.
    Brief,
    /// When the series is selected by name.
    Short,
    /// As published.
    Full,
}

impl StudyLength {
    /// Note about the extent.
    pub fn note(self) -> &'static str {
        match self {
            StudyLength::Brief => "brief",
            StudyLength::Short => "short",
            StudyLength::Full => "full",
        }
    }
}

/// Options of `filemap published`.
#[derive(Clone, Debug, Default)]
pub struct PublishedOptions {
    /// Number of seeds of each random cell, at least 1, if given.
    pub seeds: Option<u64>,
    /// Whether long studies run at their published length.
    pub full: bool,
    /// Programs and libraries of this machine as jobs of workload `elf`, with their headers.
    pub programs: Vec<JobFlags>,
    /// Names of programs that are missing or unreadable.
    pub absent: Vec<String>,
}
