//! What the commands ask of a job that flags say: of one file, or a thrash.

use filemap_core::decision::Log;
use filemap_job::{EngineKind, Job, JobSpec, Record, Run, Thrash, Work};
use filemap_kernel::trace::Observed;
use filemap_model::thrash::trace_thrash;
use filemap_model::{Profile, trace};
use filemap_report::explain::{Explainer, History, Sight};

use crate::error::Error;
use crate::{decided, input};

/// A job that flags, or the same keys of a job file, say.
pub trait FlagJob: Work<Run = Run, Record = Record> {
    /// The job of `spec` on this machine.
    ///
    /// # Errors
    /// What is wrong with it.
    fn of_spec(spec: JobSpec) -> Result<Self, Error>;

    /// What it says that changes nothing, or cannot show, as a sentence each. `runs` are those of
    /// it and its variants.
    fn without_effect(&self, runs: &[&Run]) -> Vec<String>;

    /// The job of one file that it is, if it is one.
    fn of_one_file(&self) -> Option<&Job>;

    /// Whether no flags say all of it.
    fn needs_file(&self) -> bool;

    /// The `filemap run` that repeats it.
    fn command(&self) -> String;

    /// The same, without a machine profile that `is_usual`.
    fn repeated(&self, is_usual: impl Fn(&str) -> bool) -> String {
        let mut job = self.clone();
        let profile = &mut job.machine_mut().profile;
        *profile = profile.take().filter(|name| !is_usual(name));
        job.command()
    }

    /// Sends the decisions of the model to `log`.
    ///
    /// # Errors
    /// Those of the model.
    fn decide(&self, profile: &Profile, log: &mut impl Log) -> Result<(), Error>;

    /// Runs it once more on its kernel, under a trace, and says what that decided.
    ///
    /// # Errors
    /// A kernel that cannot be watched; a job of which there is no such log.
    fn observe(&self) -> Result<Observed, Error>;

    /// What was read in the course of its run, where it runs in the model and on one file.
    ///
    /// # Errors
    /// Those of the model.
    fn history(&self, profile: &Profile) -> Result<Option<History>, Error>;
}

impl FlagJob for Job {
    fn of_spec(spec: JobSpec) -> Result<Self, Error> {
        Ok(spec.validate(input::host_release().as_deref())?)
    }

    fn without_effect(&self, _: &[&Run]) -> Vec<String> {
        Job::without_effect(self)
    }

    fn of_one_file(&self) -> Option<&Job> {
        Some(self)
    }

    fn needs_file(&self) -> bool {
        self.phases.len() > 1
    }

    fn command(&self) -> String {
        Job::command(self)
    }

    fn decide(&self, profile: &Profile, log: &mut impl Log) -> Result<(), Error> {
        trace(self, profile, log)?;
        Ok(())
    }

    fn observe(&self) -> Result<Observed, Error> {
        decided::observe(&self.program())
    }

    fn history(&self, profile: &Profile) -> Result<Option<History>, Error> {
        if self.engine != EngineKind::Model {
            return Ok(None);
        }
        let mut explainer = Explainer::new(self, Sight::Every);
        trace(self, profile, &mut explainer)?;
        Ok(Some(explainer.finish().whole_history()))
    }
}

impl FlagJob for Thrash {
    fn of_spec(spec: JobSpec) -> Result<Self, Error> {
        Ok(spec.validate_thrash(input::host_release().as_deref())?)
    }

    fn without_effect(&self, runs: &[&Run]) -> Vec<String> {
        Thrash::without_effect(self, runs)
    }

    fn of_one_file(&self) -> Option<&Job> {
        None
    }

    fn needs_file(&self) -> bool {
        false
    }

    fn command(&self) -> String {
        Thrash::command(self)
    }

    fn decide(&self, profile: &Profile, log: &mut impl Log) -> Result<(), Error> {
        trace_thrash(self, profile, log)?;
        Ok(())
    }

    fn observe(&self) -> Result<Observed, Error> {
        let message = "--log of --workload thrash is of the model's decisions; give --on model";
        Err(Error::CannotRun(message.to_string()))
    }

    fn history(&self, _: &Profile) -> Result<Option<History>, Error> {
        Ok(None)
    }
}
