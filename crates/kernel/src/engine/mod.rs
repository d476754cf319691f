//! The engine that runs jobs on the running kernel.

mod environment;
mod file;
mod guest;
mod limits;
mod measure;
mod phases;
mod plan;
mod settings;

use std::path::PathBuf;

use filemap_job::{Engine, EngineKind, Job, Ready, Record, Run};

use crate::Error;
use crate::journal::Journal;
use crate::observe::io_bytes;
use crate::probe::Plan;
use crate::temporary::require_space;

pub use environment::{CONFIG_OPTIONS, host as host_environment};
pub use file::temporary_directory;
pub use guest::{Boot, BootedJob, in_guest, mount_memory_cgroups};
pub use plan::{MAX_RUN_ACCESSES, plan};

use file::JobFile;
pub(crate) use file::{may_drop, place_of, scratch_directory};
use limits::MemoryLimits;
pub(crate) use limits::{LruGen, lru_gen};
pub(crate) use settings::FAULT_AROUND_FILE;
use settings::Settings;

/// The running kernel as an engine.
#[derive(Clone, Debug)]
pub struct Kernel {
    journal: Journal,
    directory: PathBuf,
    may_change_settings: bool,
}

impl Kernel {
    /// An engine that makes temporary files in [`temporary_directory`].
    ///
    /// # Errors
    /// No directory on a disk; no journal.
    pub fn new(journal: Journal) -> Result<Self, Error> {
        Ok(Kernel::in_directory(journal, temporary_directory()?))
    }

    /// An engine that makes temporary files in `directory`.
    pub fn in_directory(journal: Journal, directory: PathBuf) -> Self {
        Kernel { journal, directory, may_change_settings: false }
    }

    /// This engine, which may change settings of the whole machine that a job wants otherwise;
    /// they are restored behind its runs.
    pub fn changing_settings(self, may: bool) -> Self {
        Kernel { may_change_settings: may, ..self }
    }

    /// Checks that there is room for the files of all of `jobs` at once, before any is written.
    ///
    /// # Errors
    /// [`Error::NoSpace`].
    fn require_space<'a>(&self, jobs: impl Iterator<Item = &'a Job>) -> Result<(), Error> {
        let bytes = jobs.map(file::written_bytes).fold(0, u64::saturating_add);
        require_space(&self.directory, bytes)
    }

    /// Makes ready for the runs of `job`: checks it, and makes its file and filesystem. All of it
    /// goes when what is returned drops.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::cannot_run_here`] tells what is missing from what failed.
    pub fn prepare(&self, job: &Job) -> Result<Prepared, Error> {
        plan::check_machine(job)?;
        let limits = MemoryLimits::of(job);
        limits.check(job)?;
        let settings = Settings::apply(job, &self.journal, self.may_change_settings)?;
        let file = JobFile::of(job, &self.journal, &self.directory)?;
        let plan = plan(job, &file.path)?;
        Ok(Prepared {
            job: job.clone(),
            journal: self.journal.clone(),
            plan,
            limits,
            file,
            _settings: settings,
            disturbed: 0,
            unsettled: 0,
        })
    }
}

impl Engine<Job> for Kernel {
    type Error = Error;
    type Ready = Prepared;

    fn prepare_all(&self, jobs: &[&Job]) -> Result<Vec<Prepared>, Error> {
        self.require_space(jobs.iter().copied())?;
        jobs.iter().map(|job| self.prepare(job)).collect()
    }
}

/// Refuses what the running kernel is not, and what its settings are not.
pub(crate) fn check(job: &Job) -> Result<(), Error> {
    plan::check_machine(job)?;
    settings::check(job)
}

/// A job with its file, ready to run as often as wanted.
#[derive(Debug)]
pub struct Prepared {
    job: Job,
    journal: Journal,
    plan: Plan,
    limits: MemoryLimits,
    file: JobFile,
    _settings: Settings,
    /// Runs that were thrown away because somebody else took pages of the file.
    disturbed: u64,
    /// Runs that were kept although.
    unsettled: u64,
}

impl Prepared {
    /// Makes its next runs those of another seed.
    ///
    /// # Errors
    /// As for [`Kernel::prepare`].
    fn reseed(&mut self, seed: u64) -> Result<(), Error> {
        if seed != self.job.seed {
            self.job = self.job.with_seed(seed);
            self.plan = plan(&self.job, &self.file.path)?;
        }
        Ok(())
    }
}

impl Ready for Prepared {
    type Error = Error;
    type Run = Run;
    type Record = Record;

    fn seed(&self) -> u64 {
        self.job.seed
    }

    fn turns(&self) -> u64 {
        self.job.runs
    }

    /// One `read(2)` may read as much at once.
    fn io_bytes(&self) -> Option<u64> {
        io_bytes(&self.file.path).ok()
    }

    fn take_turn(&mut self, seed: u64) -> Result<Vec<Run>, Error> {
        self.reseed(seed)?;
        Ok(vec![self.run()?])
    }

    fn record(mut self, runs: Vec<Run>) -> Record {
        if let Some(first) = runs.first() {
            self.job = self.job.with_seed(first.seed);
        }
        let environment = environment::of(&self);
        Record::new(&self.job, EngineKind::Kernel.name(), environment, runs)
    }
}
