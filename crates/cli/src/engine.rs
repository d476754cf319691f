//! The engines, and how many jobs are run on them.

use filemap_core::units::PageCount;
use filemap_job::{Engine, EngineKind, Filesystem, Job, Machine, Record, Summary, seeds};
use filemap_kernel::engine::{Kernel, Prepared, Runnable, boot, check_boot};
use filemap_model::{Model, Profile};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Error;
use crate::interrupt::{self, Undoing};
use crate::progress::Progress;
use crate::provenance;

/// Runs `jobs`, each once with its own seed and all in the model with `profile`: see
/// [`run_seeds`].
pub fn run_all(jobs: &[Job], profile: &Profile) -> Result<Vec<Record>, Error> {
    run_seeds(jobs, &mut vec![*profile; jobs.len()], 1, false)
}

/// Runs each of `jobs`, of which the model has the profile of the same position, with `count`
/// seeds; the records are in the order of the jobs. Jobs of the model run in parallel; after them
/// those of the kernel, one run of each in turn, and those that boot a kernel. With `apply`,
/// settings of the machine are changed for them where they want others. Beside the running kernel
/// each of `profiles` gets the largest request of the device that it reads the same file from.
pub fn run_seeds(
    jobs: &[Job],
    profiles: &mut [Profile],
    count: u64,
    apply: bool,
) -> Result<Vec<Record>, Error> {
    if apply && jobs.iter().all(|job| Place::of(job) != Place::Host) {
        let message = "--apply is for the running kernel; give --on kernel, or remove it";
        return Err(Error::Usage(message.to_string()));
    }
    let on = |place: Place| jobs.iter().filter(move |job| Place::of(job) == place);
    let with_seeds = |job: &Job| -> Vec<Job> {
        seeds(job.seed, count).map(|seed| job.with_seed(seed)).collect()
    };
    let runs: u64 = on(Place::Host).map(|job| job.runs).sum();
    let others = on(Place::Model).count() + on(Place::Image).count();
    let progress = Progress::new((others + runs as usize) * count as usize);
    // Before the model runs: what cannot be done here is told at once.
    on(Place::Image).try_for_each(check_boot)?;
    let here = HostJobs::prepare(on(Place::Host), count, apply)?;
    for (job, profile) in jobs.iter().zip(profiles.iter_mut()) {
        profile.device.io_bytes = here.io_bytes(&job.machine).unwrap_or(profile.device.io_bytes);
    }
    let of_model = jobs.iter().zip(&*profiles).filter(|(job, _)| Place::of(job) == Place::Model);
    let of_model = of_model
        .flat_map(|(job, profile)| with_seeds(job).into_iter().map(move |job| (job, *profile)));
    let of_model: Vec<(Job, Profile)> = of_model.collect();
    // One job a piece: they differ in length by far.
    let models = of_model.par_iter().with_max_len(1).map(|(job, profile)| {
        let record = Model { profile: *profile }.run(job)?;
        progress.advance();
        Ok::<_, Error>(record)
    });
    let models = threads()?.install(|| models.collect::<Result<Vec<Record>, _>>());
    let mut models = models?.into_iter();
    let measured = here.run(&progress)?.into_iter();
    let mut measured = measured.map(|(prepared, runs)| prepared.record(runs));
    let mut records = Vec::with_capacity(jobs.len());
    for job in jobs {
        let record = match Place::of(job) {
            Place::Model => merged(models.by_ref().take(count as usize)),
            Place::Host => measured.next(),
            Place::Image => {
                let booted = with_seeds(job).into_iter().map(|job| {
                    let record = boot(&job)?;
                    progress.advance();
                    Ok::<_, Error>(record)
                });
                merged(booted.collect::<Result<Vec<_>, _>>()?)
            }
        };
        let mut record = record.expect("each job has run");
        provenance::stamp(&mut record.environment, &record.engine);
        records.push(record);
    }
    Ok(records)
}

/// A thread for each processor; where there is no room for them (`ulimit`), only this one.
///
/// # Errors
/// When there is no room even for that.
pub fn threads() -> Result<ThreadPool, Error> {
    let all = ThreadPoolBuilder::new().build();
    let pool =
        all.or_else(|_| ThreadPoolBuilder::new().num_threads(1).use_current_thread().build());
    pool.map_err(|error| Error::CannotRun(format!("no thread can be started: {error}")))
}

/// The first of `records` with the runs of all of them.
fn merged(records: impl IntoIterator<Item = Record>) -> Option<Record> {
    let mut records = records.into_iter();
    let mut first = records.next()?;
    first.runs.extend(records.flat_map(|record| record.runs));
    first.summary = Summary::of(&first.runs);
    Some(first)
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

/// By what the kernel engine chooses where the files of a job for `machine` lie.
fn device(machine: &Machine) -> (PageCount, Filesystem) {
    (machine.read_ahead, machine.fs)
}

/// Jobs of one form that are run in turn on the running kernel.
pub struct HostJobs<W: Runnable> {
    jobs: Vec<HostJob<W>>,
    // Goes after what it has undone on Ctrl-C.
    _undoing: Option<Undoing>,
}

/// A job on the running kernel.
struct HostJob<W: Runnable> {
    prepared: Prepared<W>,
    device: (PageCount, Filesystem),
    /// The first of its seeds.
    seed: u64,
    /// The seed of each run that is still to come, the next one last.
    left: Vec<u64>,
    done: Vec<W::Run>,
}

impl<W: Runnable> HostJob<W> {
    fn run(&mut self) -> Result<(), Error> {
        let Some(seed) = self.left.pop() else { return Ok(()) };
        self.prepared.reseed(seed)?;
        self.done.push(self.prepared.run()?);
        Ok(())
    }
}

impl<W: Runnable> HostJobs<W> {
    /// Makes ready for `count` seeds of each of `jobs`.
    pub fn prepare<'a>(
        jobs: impl Iterator<Item = &'a W>,
        count: u64,
        apply: bool,
    ) -> Result<Self, Error>
    where
        W: 'a,
    {
        let mut jobs = jobs.peekable();
        if jobs.peek().is_none() {
            return Ok(HostJobs { jobs: Vec::new(), _undoing: None });
        }
        let (journal, undoing) = interrupt::journal()?;
        let kernel = Kernel::new(journal)?.changing_settings(apply);
        let jobs: Vec<&W> = jobs.collect();
        kernel.require_space(jobs.iter().copied())?;
        let jobs = jobs.into_iter().map(|job| {
            let seeds: Vec<u64> = seeds(job.seed(), count).collect();
            let each = seeds.iter().rev().flat_map(|seed| vec![*seed; job.runs() as usize]);
            let (prepared, left) = (kernel.prepare(job)?, each.collect());
            let (device, done) = (device(job.machine()), Vec::new());
            Ok(HostJob { prepared, device, seed: job.seed(), left, done })
        });
        let jobs = jobs.collect::<Result<_, Error>>()?;
        Ok(HostJobs { jobs, _undoing: Some(undoing) })
    }

    /// What the device takes at once from which one of them reads the files of a job for `machine`,
    /// so that the model beside them decides alike.
    pub fn io_bytes(&self, machine: &Machine) -> Option<u64> {
        let same = self.jobs.iter().find(|here| here.device == device(machine));
        same.or(self.jobs.first())?.prepared.io_bytes().ok()
    }

    /// One run of each, and again: what changes on the machine meanwhile meets all of them. Each
    /// job as it was given, with its runs.
    pub fn run(mut self, progress: &Progress) -> Result<Vec<(Prepared<W>, Vec<W::Run>)>, Error> {
        while self.jobs.iter().any(|job| !job.left.is_empty()) {
            for job in self.jobs.iter_mut().filter(|job| !job.left.is_empty()) {
                job.run()?;
                progress.advance();
            }
        }
        let ran = self.jobs.into_iter().map(|mut job| {
            job.prepared.reseed(job.seed)?;
            Ok((job.prepared, job.done))
        });
        ran.collect()
    }
}
