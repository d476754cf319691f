//! Selects and runs series.

use filemap_job::Job;
use filemap_model::Profile;

use super::record::PublishedRecord;
use super::registry::{KINDS, NAMES};
use super::study::{PublishedOptions, Study, StudyLength};
use crate::engine::{self, Engines};
use crate::error::Error;
use crate::folio_ops;

/// The selected series.
pub struct PublishedPlan(Vec<Box<dyn Study>>);

impl PublishedPlan {
    /// Selects the series in `names`; if empty all of them, the long ones in brief form.
    ///
    /// # Errors
    /// For an unknown name.
    pub fn select(names: &[String], options: &PublishedOptions) -> Result<PublishedPlan, Error> {
        let is_unknown = |name: &&String| !NAMES.contains(&name.as_str());
        if let Some(name) = names.iter().find(is_unknown) {
            return Err(Error::UnknownSeries { name: name.clone(), known: NAMES.join(", ") });
        }
        let length = match (options.full, names.is_empty()) {
            (true, _) => StudyLength::Full,
            (false, false) => StudyLength::Short,
            (false, true) => StudyLength::Brief,
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
        Ok(PublishedPlan(studies))
    }

    /// Checks the memory that folio operations need: they run last, and earlier results would be
    /// lost.
    ///
    /// # Errors
    /// If there is too little memory, with the remedy.
    pub fn check(&self) -> Result<(), Error> {
        let mut jobs = self.0.iter().filter_map(|study| study.folio_ops());
        jobs.try_for_each(|(job, source)| folio_ops::check_memory(&job, source))
    }

    /// Runs all selected series; `command` repeats them.
    ///
    /// # Errors
    /// If a job cannot run.
    pub fn run(&self, engines: &impl Engines, command: String) -> Result<PublishedRecord, Error> {
        let per_study: Vec<Vec<Job>> = self.0.iter().map(|study| study.jobs()).collect();
        let jobs = per_study.concat();
        let mut profiles = vec![Profile::DEFAULT; jobs.len()];
        let records = engine::run_jobs(engines, &jobs, &mut profiles, 1, false)?;
        let mut left = records.as_slice();
        let mut all = Vec::new();
        for (study, jobs) in self.0.iter().zip(&per_study) {
            let (own, rest) = left.split_at(jobs.len());
            left = rest;
            all.push(study.find(own, &|total| engines.progress(Some(total)))?);
        }
        Ok(PublishedRecord::new(all, &records, command))
    }
}
