//! From the series that are asked for to their record.

use filemap_job::{FolioOps, Job, JobSpec, Record};
use filemap_model::Profile;

use super::cell::Cell;
use super::{DEFAULT_SEEDS, NAMES, Published};
use super::{exec_order, mm_owner, mmap_miss, vma_bound, vma_retry};
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

/// What was found of a series.
pub struct Found {
    pub series: &'static str,
    pub cells: Vec<Cell>,
    /// Where what is no job ran, if it has any.
    pub origin: Option<Origin>,
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
        let is_named = !names.is_empty();
        let mut chosen: Vec<&'static str> = Vec::new();
        for name in names {
            let known = NAMES.into_iter().find(|known| known == name);
            let unknown = || Error::UnknownSeries { name: name.clone(), known: NAMES.join(", ") };
            let known = known.ok_or_else(unknown)?;
            if !chosen.contains(&known) {
                chosen.push(known);
            }
        }
        let chosen = if is_named { chosen } else { NAMES.to_vec() };
        let studies = chosen.into_iter().map(|name| study(name, is_named, options));
        Ok(Plan(studies.collect::<Result<_, Error>>()?))
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

/// The study of one of [`NAMES`]; brief where it takes long and is not asked for by name.
fn study(name: &str, is_named: bool, options: &Options) -> Result<Box<dyn Study>, Error> {
    Ok(match name {
        mmap_miss::NAME => {
            Box::new(mmap_miss::MmapMiss::new(options.seeds.unwrap_or(DEFAULT_SEEDS)))
        }
        vma_bound::NAME => Box::new(vma_bound::VmaBound::new(&options.programs)),
        exec_order::NAME => Box::new(exec_order::ExecOrder),
        vma_retry::NAME => {
            let form = vma_retry::Form::of(options.full, is_named);
            Box::new(vma_retry::VmaRetry::new(options.seeds, form)?)
        }
        _ => Box::new(mm_owner::MmOwner::new(options.full, is_named)),
    })
}
