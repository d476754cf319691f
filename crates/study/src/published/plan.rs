//! From the series that are asked for to their record.

use filemap_job::{FolioOps, Job, JobSpec, Record};
use filemap_model::Profile;

use super::cell::Cell;
use super::{KINDS, NAMES, Published};
use crate::engine::{self, Engines, Progress};
use crate::error::Error;
use crate::folio_ops::{self, Asked};
use crate::footer::Origin;

/// One published patch series.
pub trait Study {
    /// The jobs whose records it needs, in order. Some studies need none.
    fn jobs(&self) -> Vec<Job> {
        Vec::new()
    }

    /// Operations over folios that it runs, which may take more memory than there is, and who asked
    /// for them.
    fn folio_ops(&self) -> Option<(FolioOps, Asked)> {
        None
    }

    /// What is found with `records`, one for each of [`Study::jobs`], and with what is no job.
    ///
    /// # Errors
    /// When that cannot be run.
    fn found(&self, records: &[Record], begin: &Begin<'_>) -> Result<Found, Error>;
}

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
    /// Programs and libraries of this machine, for a report in full: jobs of the workload `elf`,
    /// with the headers of their file.
    pub programs: Vec<JobSpec>,
}

/// The series that are asked for.
pub struct Plan(Vec<Box<dyn Study>>);

impl Plan {
    /// Of the series named; for no name of all, of which those that take long are brief.
    ///
    /// # Errors
    /// For a name that is no series.
    pub fn of(names: &[String], options: &Options) -> Result<Plan, Error> {
        let is_unknown = |name: &&String| !NAMES.contains(&name.as_str());
        if let Some(name) = names.iter().find(is_unknown) {
            return Err(Error::UnknownSeries { name: name.clone(), known: NAMES.join(", ") });
        }
        let length = match (options.full, names.is_empty()) {
            (true, _) => Length::Full,
            (false, false) => Length::Short,
            (false, true) => Length::Brief,
        };
        let mut chosen: Vec<&str> = names.iter().map(String::as_str).collect();
        chosen.extend(NAMES.into_iter().filter(|_| names.is_empty()));
        let mut studies: Vec<Box<dyn Study>> = Vec::new();
        for (at, name) in chosen.iter().enumerate() {
            let kind = KINDS.iter().find(|kind| kind.name == *name);
            if let Some(kind) = kind.filter(|_| !chosen[..at].contains(name)) {
                studies.push((kind.study)(options, length)?);
            }
        }
        Ok(Plan(studies))
    }

    /// Refuses operations over folios for which there is too little memory now: they are run last,
    /// and what was run before would be lost.
    ///
    /// # Errors
    /// Such operations, with a remedy.
    pub fn check(&self) -> Result<(), Error> {
        let mut jobs = self.0.iter().filter_map(|study| study.folio_ops());
        jobs.try_for_each(|(job, asked)| folio_ops::check(&job, asked))
    }

    /// Runs everything; `command` repeats it.
    ///
    /// # Errors
    /// When something cannot be run.
    pub fn run(&self, engines: &impl Engines, command: String) -> Result<Published, Error> {
        let per_study: Vec<Vec<Job>> = self.0.iter().map(|study| study.jobs()).collect();
        let jobs = per_study.concat();
        let mut profiles = vec![Profile::DEFAULT; jobs.len()];
        let records = engine::run_jobs(engines, &jobs, &mut profiles, 1, false)?;
        let mut left = records.as_slice();
        let mut all = Vec::new();
        for (study, jobs) in self.0.iter().zip(&per_study) {
            let (own, rest) = left.split_at(jobs.len());
            left = rest;
            all.push(study.found(own, &|total| engines.progress(Some(total)))?);
        }
        Ok(Published::new(all, &records, command))
    }
}
