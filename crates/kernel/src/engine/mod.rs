//! The engine that runs jobs of one file and programs on the running kernel.

mod boot;
mod environment;
mod file;
mod file_counts;
mod flush;
mod guest;
mod limits;
mod measure;
mod needs;
mod observed;
mod phases;
mod program;
mod refusals;
mod sent;
mod settings;
mod stage;
mod switches;
mod tracer;

use std::fmt::Debug;
use std::path::PathBuf;

use filemap_job::{Engine, EngineKind, Ready, Work, flushes};
use serde_json::{Map, Value};

use crate::Error;
use crate::journal::Journal;
use crate::storage::io_bytes;
use crate::temporary::require_space;

pub use boot::{Boot, Booted};
pub use environment::{CONFIG_OPTIONS, host as host_environment};
pub use file::temporary_directory;
pub use guest::{in_guest, mount_memory_cgroups};
pub use limits::available_bytes;
pub use observed::Asked;
pub use refusals::MAX_RUN_ACCESSES;
pub use sent::{Bootable, Returned};
pub use settings::FaultAround;

pub(crate) use environment::chosen;
pub(crate) use file::{may_drop, scratch_directory, storage_of};
pub(crate) use limits::{LruGen, lru_gen};
pub(crate) use needs::{Needed, Needs};
#[cfg(test)]
pub(crate) use program::process;
pub(crate) use settings::FAULT_AROUND_FILE;
use stage::{Measured, Stage};

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
    fn require_space<W: Runnable>(&self, jobs: &[&W]) -> Result<(), Error> {
        let bytes = jobs.iter().map(|job| job.needs().written_bytes());
        let bytes = bytes.fold(0, u64::saturating_add);
        require_space(&self.directory, bytes).map_err(|error| match jobs.first() {
            Some(job) => job.needs().told(error),
            None => error,
        })
    }

    /// Makes ready for the runs of `job`: checks it, and makes its files and filesystem. All of it
    /// goes when what is returned drops.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::cannot_run_here`] tells what is missing from what failed.
    pub fn prepare<W: Runnable>(&self, job: &W) -> Result<Prepared<W>, Error> {
        let Kernel { journal, directory, may_change_settings } = self;
        let needs = job.needs();
        let stage = Stage::prepare(&needs, journal, directory, *may_change_settings)
            .map_err(|error| needs.told(error))?;
        let process = job.process(&stage.files.paths())?;
        Ok(Prepared { seed: job.seed(), work: job.clone(), process, stage, flushes: Vec::new() })
    }
}

impl<W: Runnable> Engine<W> for Kernel {
    type Error = Error;
    type Ready = Prepared<W>;

    fn prepare_all(&self, jobs: &[&W]) -> Result<Vec<Prepared<W>>, Error> {
        jobs.iter().try_for_each(|job| job.check())?;
        self.require_space(jobs)?;
        jobs.iter().map(|job| self.prepare(*job)).collect()
    }
}

/// A job of a form that runs here: of one file, or shaped like a program.
pub trait Runnable: Work {
    /// What a child does for it.
    type Process: Debug;

    /// Refuses, before anything is made for it, what this machine does not allow.
    ///
    /// # Errors
    /// See [`Error`].
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// What it asks of the machine.
    fn needs(&self) -> Needs;

    /// What a child does for it, with its files at `paths`.
    ///
    /// # Errors
    /// What no probe can do.
    fn process(&self, paths: &[PathBuf]) -> Result<Self::Process, Error>;

    /// What the `error` of its process says, with what it names by the job's own names.
    fn named(&self, error: Error) -> Error;

    /// Runs once.
    ///
    /// # Errors
    /// See [`Error`].
    fn measure(&self, process: &Self::Process, stage: &Stage)
    -> Result<Measured<Self::Run>, Error>;
}

/// Refuses what the running kernel is not, and what its settings are not.
pub(crate) fn check(needs: &Needs) -> Result<(), Error> {
    refusals::check_machine(needs)?;
    settings::check(&needs.machine)
}

/// A job with its files, ready to run as often as wanted.
#[derive(Debug)]
pub struct Prepared<W: Runnable> {
    work: W,
    /// The seed that the job names.
    seed: u64,
    process: W::Process,
    stage: Stage,
    /// Accesses that each run had begun at each flush, where that decides what it evicts and is
    /// known.
    flushes: Vec<Option<Vec<u64>>>,
}

impl<W: Runnable> Prepared<W> {
    /// Runs once, from cold files. A run in which somebody else took pages of the files out of
    /// the cache is repeated a few times.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run(&mut self) -> Result<W::Run, Error> {
        let Prepared { work, process, stage, flushes, .. } = self;
        let measured = stage.undisturbed(|stage| work.measure(process, stage))?;
        flushes.push(measured.flushes);
        Ok(measured.run)
    }

    /// Makes its next runs those of another seed.
    ///
    /// # Errors
    /// As for [`Kernel::prepare`].
    fn reseed(&mut self, seed: u64) -> Result<(), Error> {
        if seed != self.work.seed() {
            self.work = self.work.with_seed(seed);
            self.process = self.work.process(&self.stage.files.paths())?;
        }
        Ok(())
    }

    /// Where and how its runs took place.
    pub fn environment(&self) -> Map<String, Value> {
        let mut environment = environment::of(&self.stage, &self.work.needs(), self.seed);
        // Of all runs or of none: they are told apart by their position only.
        let known: Option<Vec<Vec<u64>>> = self.flushes.iter().cloned().collect();
        if let Some(runs) = known.filter(|runs| !runs.is_empty()) {
            flushes::note(&mut environment, &runs);
        }
        environment
    }
}

impl<W: Runnable> Ready for Prepared<W> {
    type Error = Error;
    type Run = W::Run;
    type Record = W::Record;

    fn seed(&self) -> u64 {
        self.seed
    }

    fn turns(&self) -> u64 {
        self.work.runs()
    }

    /// One `read(2)` of the first file may read as much at once.
    fn io_bytes(&self) -> Option<u64> {
        io_bytes(&self.stage.files.files[0].path).ok()
    }

    fn take_turn(&mut self, seed: u64) -> Result<Vec<W::Run>, Error> {
        self.reseed(seed)?;
        Ok(vec![self.run()?])
    }

    fn record(self, runs: Vec<W::Run>) -> W::Record {
        let environment = self.environment();
        self.work.with_seed(self.seed).record(EngineKind::Kernel, environment, runs)
    }
}
