//! What a series runs, and what it finds.

use filemap_job::{FolioOps, Job, JobSpec, Record};

use super::cell::Cell;
use crate::engine::Progress;
use crate::error::Error;
use crate::folio_ops::SizeSource;
use crate::footer::Origin;

/// One published patch series.
pub trait Study {
    /// The jobs whose records it needs, in order. Some studies need none.
    fn jobs(&self) -> Vec<Job> {
        Vec::new()
    }

    /// Operations over folios that it runs, which may take more memory than there is, and who asked
    /// for them.
    fn folio_ops(&self) -> Option<(FolioOps, SizeSource)> {
        None
    }

    /// What is found with `records`, one for each of [`Study::jobs`], and with what is no job.
    ///
    /// # Errors
    /// When that cannot be run.
    fn found(&self, records: &[Record], begin: &Begin<'_>) -> Result<Found, Error>;
}

/// A study, made as the options say.
pub type Chosen = Result<Box<dyn Study>, Error>;

/// Shows how far so many runs are.
pub type Begin<'a> = dyn Fn(u64) -> Box<dyn Progress> + 'a;

/// What was found of a series: its cells, and where what is no job ran, if it has any.
pub type Found = (Vec<Cell>, Option<Origin>);

/// How long the studies are that take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Length {
    /// Among all series.
    Brief,
    /// Where the series is asked for by name.
    Short,
    /// As published.
    Full,
}

impl Length {
    /// The note on it.
    pub fn note(self) -> &'static str {
        match self {
            Length::Brief => "brief",
            Length::Short => "short",
            Length::Full => "full",
        }
    }
}

/// What the published tables are made with.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Seeds of each random cell, 1 or more, where they are given.
    pub seeds: Option<u64>,
    /// In the published length, where that takes long.
    pub full: bool,
    /// Programs and libraries of this machine: jobs of the workload `elf`, with the headers of
    /// their file.
    pub programs: Vec<JobSpec>,
    /// Names of those that are not here or cannot be read.
    pub absent: Vec<String>,
}
