//! A job as it was written.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::flags::JobSpec;
use crate::program::{Job, ProgramSpec};

/// A job as it was written; it replays the same runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Written {
    /// Flags, or a job file of the same keys.
    Flags(Box<JobSpec>),
    /// A job file with tables.
    Tables(Box<ProgramSpec>),
}

impl Written {
    /// What flags can say of it: of a job file with tables where and how it runs, and for how long.
    pub fn flags(&self) -> Cow<'_, JobSpec> {
        match self {
            Written::Flags(flags) => Cow::Borrowed(flags),
            Written::Tables(tables) => {
                let duration = tables.thread.iter().find_map(|thread| thread.lasts.clone());
                Cow::Owned(JobSpec { duration, ..tables.shared() })
            }
        }
    }

    /// The job, checked: [`JobSpec::validate`] or [`ProgramSpec::validate`].
    ///
    /// # Errors
    /// Theirs.
    pub fn validate(&self, host_release: Option<&str>) -> Result<Job, Error> {
        match self {
            Written::Flags(spec) => JobSpec::clone(spec).validate(host_release),
            Written::Tables(tables) => tables.validate(host_release),
        }
    }

    /// Where it runs, to be changed.
    pub fn runs_on_mut(&mut self) -> RunsOnMut<'_> {
        match self {
            Written::Flags(spec) => {
                let JobSpec { on: engine, kernel, image, modules, .. } = &mut **spec;
                RunsOnMut { engine, kernel, image, modules }
            }
            Written::Tables(spec) => {
                let ProgramSpec { on: engine, kernel, image, modules, .. } = &mut **spec;
                RunsOnMut { engine, kernel, image, modules }
            }
        }
    }

    /// The job file with tables, where it is one.
    pub fn tables(&self) -> Option<&ProgramSpec> {
        match self {
            Written::Flags(_) => None,
            Written::Tables(tables) => Some(tables),
        }
    }
}

/// What a job says of where it runs. What is `None` was not given.
#[derive(Debug)]
pub struct RunsOnMut<'a> {
    /// The engine: `model` or `kernel`, or several of a comparison.
    pub engine: &'a mut Option<String>,
    /// The kernel whose rules the model follows.
    pub kernel: &'a mut Option<String>,
    /// The kernel that is booted.
    pub image: &'a mut Option<String>,
    /// Where its modules are.
    pub modules: &'a mut Option<String>,
}

impl From<&Job> for Written {
    fn from(job: &Job) -> Written {
        match &job.of_flags {
            Some(flags) => Written::Flags(flags.clone()),
            None => Written::Tables(Box::new(job.spec.clone())),
        }
    }
}
