//! The engines, and how many jobs are run on them.

use filemap_job::{Engine, EngineKind, Job, Record, Run};
use filemap_kernel::engine::{Kernel, Prepared, boot, check_boot};
use filemap_kernel::image;
use filemap_model::{Model, Profile};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Error;
use crate::interrupt::{self, Undoing};
use crate::progress::Progress;
use crate::provenance;

/// Runs `jobs`; the records are in the order of the jobs. Jobs of the model run in parallel;
/// after them those of the kernel, one run of each in turn, and those that boot a kernel. With
/// `apply`, settings of the machine are changed for them where they want others.
pub fn run_all(jobs: &[Job], profile: &Profile, apply: bool) -> Result<Vec<Record>, Error> {
    if apply && jobs.iter().all(|job| Place::of(job) != Place::Host) {
        let message = "--apply is for the running kernel; give --on kernel, or remove it";
        return Err(Error::Usage(message.to_string()));
    }
    let on = |place: Place| jobs.iter().filter(move |job| Place::of(job) == place);
    let runs: u64 = on(Place::Host).map(|job| job.runs).sum();
    let others = on(Place::Model).count() + on(Place::Image).count();
    let progress = Progress::new(others + runs as usize);
    // Before the model runs: what cannot be done here is told at once.
    on(Place::Image).try_for_each(check_boot)?;
    let arms = Arms::prepare(on(Place::Host), apply)?;
    let guests = on(Place::Image).next().map(|_| image::IO_BYTES);
    let mut profile = *profile;
    profile.device.io_bytes = arms.io_bytes().or(guests).unwrap_or(profile.device.io_bytes);
    let models: Vec<&Job> = on(Place::Model).collect();
    // One job a piece: they differ in length by far.
    let models = models.par_iter().with_max_len(1).map(|job| {
        let record = Model { profile }.run(job)?;
        progress.advance();
        Ok::<_, Error>(record)
    });
    let models = threads()?.install(|| models.collect::<Result<Vec<Record>, _>>());
    let mut models = models?.into_iter();
    let mut measured = arms.run(&progress)?.into_iter();
    let mut records = Vec::with_capacity(jobs.len());
    for job in jobs {
        let record = match Place::of(job) {
            Place::Model => models.next(),
            Place::Host => measured.next(),
            Place::Image => {
                let record = boot(job)?;
                progress.advance();
                Some(record)
            }
        };
        let mut record = record.expect("each job has run");
        provenance::stamp(&mut record.environment, &record.engine);
        records.push(record);
    }
    Ok(records)
}

/// A thread for each processor; where there is no room for them (`ulimit`), only this one.
fn threads() -> Result<ThreadPool, Error> {
    let all = ThreadPoolBuilder::new().build();
    let pool =
        all.or_else(|_| ThreadPoolBuilder::new().num_threads(1).use_current_thread().build());
    pool.map_err(|error| Error::CannotRun(format!("no thread can be started: {error}")))
}

/// Where a job runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the model.
    Model,
    /// On the running kernel.
    Host,
    /// On a kernel that is booted for it.
    Image,
}

impl Place {
    fn of(job: &Job) -> Place {
        match (job.engine, &job.image) {
            (EngineKind::Model, _) => Place::Model,
            (EngineKind::Kernel, None) => Place::Host,
            (EngineKind::Kernel, Some(_)) => Place::Image,
        }
    }
}

/// Jobs that are run in turn on the running kernel.
struct Arms {
    arms: Vec<(Prepared, u64, Vec<Run>)>,
    // Goes after what it has undone on Ctrl-C.
    _undoing: Option<Undoing>,
}

impl Arms {
    fn prepare<'a>(jobs: impl Iterator<Item = &'a Job>, apply: bool) -> Result<Self, Error> {
        let mut jobs = jobs.peekable();
        if jobs.peek().is_none() {
            return Ok(Arms { arms: Vec::new(), _undoing: None });
        }
        let (journal, undoing) = interrupt::journal()?;
        let kernel = Kernel::new(journal)?.changing_settings(apply);
        let jobs: Vec<&Job> = jobs.collect();
        kernel.require_space(jobs.iter().copied())?;
        let arms = jobs.into_iter().map(|job| Ok((kernel.prepare(job)?, job.runs, Vec::new())));
        let arms = arms.collect::<Result<_, Error>>()?;
        Ok(Arms { arms, _undoing: Some(undoing) })
    }

    /// What the device that the first of them reads from takes at once, so that the model beside
    /// them decides alike.
    fn io_bytes(&self) -> Option<u64> {
        self.arms.first().and_then(|(prepared, ..)| prepared.io_bytes().ok())
    }

    /// One run of each, and again: what changes on the machine meanwhile meets all of them.
    fn run(mut self, progress: &Progress) -> Result<Vec<Record>, Error> {
        while self.arms.iter().any(|(_, runs, done)| (done.len() as u64) < *runs) {
            for (prepared, runs, done) in &mut self.arms {
                if (done.len() as u64) < *runs {
                    done.push(prepared.run()?);
                    progress.advance();
                }
            }
        }
        Ok(self.arms.into_iter().map(|(prepared, _, runs)| prepared.record(runs)).collect())
    }
}
