//! A job that is yet to be run.

use filemap_job::Job;
use filemap_model::Profile;

use super::RunRecord;
use crate::engine::{self, Engines};
use crate::error::Error;
use crate::explain;
use crate::given::{self, Given};
use crate::kernel_match;
use crate::seeds::{self, Cell, with_seeds};

/// A job that is yet to be run.
#[allow(missing_docs, reason = "their names say it")]
pub struct Plan<'a> {
    given: &'a Given,
    pub job: Job,
    /// What the model has for it.
    pub profile: Profile,
    warnings: Vec<String>,
}

/// What is asked of a run beside its job.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// How many seeds, where that was said.
    pub seeds: Option<u64>,
    /// Whether settings of the machine may be changed.
    pub apply: bool,
    /// Whether the course of the first run is wanted too.
    pub history: bool,
}

impl<'a> Plan<'a> {
    /// The job that was `given`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(given: &'a Given) -> Result<Self, Error> {
        let mut written = given.written.clone();
        let found = given.resolve(&mut written)?;
        let profile = found.on_device(given::profile(&mut written)?);
        let job = given.validate(&written)?;
        kernel_match::check(&job)?;
        Ok(Plan { given, job, profile, warnings: found.warnings })
    }

    /// Runs it on `engines`.
    ///
    /// # Errors
    /// Those of the engines.
    pub fn run(mut self, engines: &impl Engines, asked: Asked) -> Result<RunRecord, Error> {
        let (jobs, count) = (std::slice::from_ref(&self.job), asked.seeds.unwrap_or(1));
        let profiles = std::slice::from_mut(&mut self.profile);
        let begun = seeds::spent();
        let records = engine::run_jobs(engines, jobs, profiles, count, asked.apply)?;
        let took = seeds::spent() - begun;
        let mut record = records.into_iter().next().expect("one job has one record");
        let Plan { given, job, profile, warnings } = self;
        given.leave_lists(&mut record);
        record.warnings = warnings;
        record.warnings.extend(job.without_effect());
        record.warnings.extend(job.told_of_seeds(count));
        record.warnings.extend(kernel_match::warnings(given.kernel().as_deref(), &[&job])?);
        if asked.seeds.is_none() {
            let cell = Cell { name: "this job", job: &job, profile: &profile, record: &record };
            let warnings = seeds::warnings(&[cell], took)?;
            record.warnings.extend(warnings);
        }
        let history = if asked.history { explain::course(&job, &profile, &record)? } else { None };
        let command = with_seeds(given.command("run", &job), asked.seeds);
        Ok(RunRecord::new(record, &job, history, command))
    }
}
