//! A job that was given, and that is yet to be run.

use std::time::Duration;

use filemap_job::{Job, Record};
use filemap_model::Profile;

use crate::error::Error;
use crate::given::{self, Given};
use crate::kernel_match;
use crate::seeds::{self, RanJob};

/// A job that is yet to be run.
#[allow(missing_docs, reason = "their names say it")]
pub struct Planned<'a> {
    pub given: &'a Given,
    pub job: Job,
    /// What the model has for it.
    pub profile: Profile,
    /// What a reader of its report should know.
    pub warnings: Vec<String>,
}

impl<'a> Planned<'a> {
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
        Ok(Planned { given, job, profile, warnings: found.warnings })
    }

    /// Adds to `record`, which came of it with so many `seeds` and took so much of this process's
    /// time, what is to be said of it.
    ///
    /// # Errors
    /// A kernel image that cannot be read; when no thread can be started.
    pub fn warn(
        &self,
        record: &mut Record,
        seeds: Option<u64>,
        took: Duration,
    ) -> Result<(), Error> {
        let Planned { given, job, profile, warnings } = self;
        given.leave_lists(record);
        record.warnings = warnings.clone();
        record.warnings.extend(job.without_effect());
        record.warnings.extend(job.told_of_seeds(seeds.unwrap_or(1)));
        record.warnings.extend(kernel_match::warnings(given.kernel().as_deref(), &[job])?);
        if seeds.is_none() {
            let cell = RanJob { name: "this job", job, profile, record };
            let warnings = seeds::warnings(&[cell], took)?;
            record.warnings.extend(warnings);
        }
        Ok(())
    }
}
