//! The engine that runs jobs on the running kernel.

mod boot;
mod counts;
mod environment;
mod file;

mod guest;
mod guest_protocol;
mod limits;
mod needs;
mod observe;
mod program;
mod settings;
mod stage;

use std::path::PathBuf;

use filemap_job::program::Job;
use filemap_job::{Engine, EngineKind, JobRuns, ReadyJob, Run, flushes};
use serde_json::{Map, Value};

use crate::Error;
use crate::journal::Journal;
use crate::probe::ProbeProcess;
use crate::residency::{PageSet, resident_pages};
use crate::storage::io_bytes;
use crate::temporary_file::require_space;

pub use boot::{BootedJob, BootedKernels, CONSOLE_KEY};
pub use environment::{CONFIG_OPTIONS, host_environment};
pub use file::temporary_directory;
pub use guest::{mount_memory_cgroups, run_in_guest};
pub use limits::available_bytes;
pub use needs::MAX_RUN_ACCESSES;
pub use observe::ObserveOptions;
pub use settings::FaultAround;

pub(crate) use file::{guard_page_cache, probe_storage, scratch_directory};
pub(crate) use limits::{LruGen, lru_gen};
pub(crate) use needs::{JobNeeds, NeededFile};
pub(crate) use program::{process, with_job_names};
pub(crate) use settings::FAULT_AROUND_FILE;
use stage::RunSetup;

/// The running kernel as an engine.
#[derive(Clone, Debug)]
pub struct HostKernel {
    journal: Journal,
    directory: PathBuf,
    may_change_settings: bool,
}

impl HostKernel {
    /// An engine that creates temporary files in [`temporary_directory`].
    ///
    /// # Errors
    /// No directory on a disk, or no journal.
    pub fn new(journal: Journal) -> Result<Self, Error> {
        Ok(HostKernel::in_directory(journal, temporary_directory()?))
    }

    /// An engine that creates temporary files in `directory`.
    pub fn in_directory(journal: Journal, directory: PathBuf) -> Self {
        HostKernel { journal, directory, may_change_settings: false }
    }

    /// Allows this engine to change machine-wide settings for a job; they are restored after its
    /// runs.
    pub fn with_setting_changes(self, may: bool) -> Self {
        HostKernel { may_change_settings: may, ..self }
    }

    /// Checks that there is space for the files of all `jobs` together, before any is written.
    ///
    /// # Errors
    /// [`Error::NoSpace`].
    fn require_space(&self, jobs: &[&Job]) -> Result<(), Error> {
        let bytes = jobs.iter().map(|job| JobNeeds::from(*job).written_bytes());
        let bytes = bytes.fold(0, u64::saturating_add);
        require_space(&self.directory, bytes).map_err(|error| match jobs.first() {
            Some(job) => JobNeeds::from(*job).with_remedy(error),
            None => error,
        })
    }

    /// Checks `job` and creates its files and filesystem. The files are removed when the result is
    /// dropped.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::cannot_run_here`] distinguishes a missing requirement from a failed
    /// run.
    pub fn prepare(&self, job: &Job) -> Result<PreparedJob, Error> {
        let HostKernel { journal, directory, may_change_settings } = self;
        let needs = JobNeeds::from(job);
        let stage = RunSetup::prepare(&needs, journal, directory, *may_change_settings)
            .map_err(|error| needs.with_remedy(error))?;
        let process = process(job, &stage.files.paths())?;
        Ok(PreparedJob { seed: job.seed, job: job.clone(), process, stage, flushes: Vec::new() })
    }
}

impl Engine for HostKernel {
    type Error = Error;
    type Ready = PreparedJob;

    fn prepare_all(&self, jobs: &[&Job]) -> Result<Vec<PreparedJob>, Error> {
        jobs.iter().try_for_each(|job| program::check(job))?;
        self.require_space(jobs)?;
        jobs.iter().map(|job| self.prepare(job)).collect()
    }
}

/// Refuses jobs that need another kernel or other settings.
pub(crate) fn check(needs: &JobNeeds) -> Result<(), Error> {
    needs::check_machine(needs)?;
    settings::check(&needs.machine)
}

/// A job with its files, ready to run any number of times.
#[derive(Debug)]
pub struct PreparedJob {
    job: Job,
    /// The seed of the job.
    seed: u64,
    process: ProbeProcess,
    stage: RunSetup,
    /// Accesses begun at each flush, for each run, if known and relevant for eviction.
    flushes: Vec<Option<Vec<u64>>>,
}

impl PreparedJob {
    /// Makes each access wait until no page of its file is being read, so that decisions do not
    /// depend on device timing. Times are then meaningless.
    pub fn with_settling(mut self) -> Self {
        self.process.settle = true;
        self
    }

    /// Runs the job once on cold files. Repeats a run in which other processes evicted pages of the
    /// files.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run(&mut self) -> Result<Run, Error> {
        let PreparedJob { job, process, stage, flushes, .. } = self;
        let measured =
            stage.repeat_while_disturbed(|stage| program::measure(job, process, stage))?;
        flushes.push(measured.flushes);
        Ok(measured.run)
    }

    /// Uses `seed` for the next runs.
    fn reseed(&mut self, seed: u64) -> Result<(), Error> {
        if seed != self.job.seed {
            self.job = self.job.with_seed(seed);
            self.process = process(&self.job, &self.stage.files.paths())?;
        }
        Ok(())
    }

    /// Environment of its runs.
    pub fn environment(&self) -> Map<String, Value> {
        let mut environment =
            environment::run_environment(&self.stage, &JobNeeds::from(&self.job), self.seed);
        // For all runs or none, since runs are identified by position.
        let known: Option<Vec<Vec<u64>>> = self.flushes.iter().cloned().collect();
        if let Some(runs) = known.filter(|runs| !runs.is_empty()) {
            flushes::note(&mut environment, &runs);
        }
        environment
    }

    /// Pages of the first file in the page cache now, as the last run left them.
    ///
    /// # Errors
    /// Neither `cachestat` nor `mincore` is permitted.
    pub fn resident(&self) -> Result<PageSet, Error> {
        resident_pages(&self.stage.files.files[0].file, self.job.file_pages(0).0)
    }
}

impl ReadyJob for PreparedJob {
    type Error = Error;

    fn seed(&self) -> u64 {
        self.seed
    }

    fn turns(&self) -> u64 {
        self.job.runs
    }

    /// Maximum request size of the first file's device in bytes, which bounds one `read(2)`.
    fn io_bytes(&self) -> Option<u64> {
        io_bytes(&self.stage.files.files[0].path).ok()
    }

    fn take_turn(&mut self, seed: u64) -> Result<Vec<Run>, Error> {
        self.reseed(seed)?;
        Ok(vec![self.run()?])
    }

    fn into_job_runs(self, runs: Vec<Run>) -> JobRuns {
        JobRuns { engine: EngineKind::Kernel, environment: self.environment(), runs }
    }
}
