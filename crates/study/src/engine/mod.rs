//! Runs jobs on the engines: in parallel, alternating, or boot by boot.

mod flush_replay;
#[cfg(test)]
mod tests;

use filemap_core::units::PageCount;
use filemap_job::{
    Engine, EngineKind, Filesystem, Job, JobRuns, Machine as JobMachine, ReadyJob, Record, Run,
    seeds,
};
use filemap_kernel::journal::Journal;
use filemap_model::Profile;

#[cfg(test)]
pub(crate) use tests::mock;

use crate::console;
use crate::error::Error;
use crate::parallel;
use crate::provenance;

/// The engines of a study, and its connection to the process. Tests use a mock.
pub trait Engines {
    /// The model.
    type Model: Engine<Error: Into<Error>, Ready: Send>;
    /// The running kernel.
    type Host: Engine<Error: Into<Error>>;
    /// Kernels booted in a guest.
    type Boot: Engine<Error: Into<Error>>;

    /// The model of a machine with `profile`.
    fn model(&self, profile: Profile) -> Self::Model;

    /// The running kernel; `apply` permits changes to its settings.
    ///
    /// # Errors
    /// If nothing can run on it.
    fn host(&self, apply: bool) -> Result<Self::Host, Error>;

    /// Kernels booted in a guest.
    fn boot(&self) -> Self::Boot;

    /// Shows progress over `total` jobs; `None` if the number is not known in advance.
    fn progress(&self, total: Option<u64>) -> Box<dyn Progress>;

    /// Sink of lines that are shown immediately.
    fn message_sink(&self) -> fn(&str);

    /// A journal that is also undone on signals while the second value lives.
    ///
    /// # Errors
    /// If it cannot be created.
    fn journal(&self) -> Result<(Journal, Undoing), Error>;
}

/// While it lives, signals undo the entries of a journal.
pub type Undoing = Box<dyn Send>;

/// Progress of a study, shown while it lives.
pub trait Progress: Send + Sync {
    /// Starts at `done` completed jobs.
    fn begin_at(&self, done: u64);

    /// Counts one completed job.
    fn advance(&self);
}

/// The records of `jobs`: see [`run_lists`].
pub fn run_jobs(
    engines: &impl Engines,
    jobs: &[Job],
    profiles: &mut [Profile],
    count: u64,
    apply: bool,
) -> Result<Vec<Record>, Error> {
    let mut ran = run_lists(engines, vec![(jobs, profiles)], count, apply)?;
    let ran = ran.pop().expect("one list has one list of runs");
    Ok(jobs.iter().zip(ran).map(|(job, ran)| Record::from_job_runs(job, ran)).collect())
}

/// Runs each job of `lists` with `count` seeds; each list has a model profile at the same position.
/// Results are in the order of the jobs, and the lists share boots and progress.
///
/// Jobs of the model run in parallel, then those of the running kernel, alternating run by run,
/// then booted kernels, boot by boot. With `apply`, settings of the machine are changed where jobs
/// ask for others. If the running kernel runs the same file, the profile takes its device's maximum
/// request size. Under memory pressure the model replays the kernel's flushes.
pub fn run_lists(
    engines: &impl Engines,
    lists: Vec<(&[Job], &mut [Profile])>,
    count: u64,
    apply: bool,
) -> Result<Vec<Vec<JobRuns>>, Error> {
    let jobs: Vec<Job> = lists.iter().flat_map(|(jobs, _)| jobs.iter().cloned()).collect();
    let mut profiles: Vec<Profile> =
        lists.iter().flat_map(|(_, list_profiles)| list_profiles.iter().copied()).collect();
    let ran = run_turns(engines, &jobs, &mut profiles, count, apply)?;
    let (mut ran, mut profiles) = (ran.into_iter(), profiles.into_iter());
    let mut of_lists = Vec::new();
    for (jobs, list_profiles) in lists {
        list_profiles.iter_mut().zip(&mut profiles).for_each(|(own, profile)| *own = profile);
        let ran: Vec<JobRuns> = ran.by_ref().take(jobs.len()).collect();
        // The recorded flushes belong to one seed.
        of_lists.push(match count {
            1 => flush_replay::with_flushes(engines, jobs, list_profiles, ran)?,
            _ => ran,
        });
    }
    Ok(of_lists)
}

/// Results of `jobs`.
fn run_turns(
    engines: &impl Engines,
    jobs: &[Job],
    profiles: &mut [Profile],
    count: u64,
    apply: bool,
) -> Result<Vec<JobRuns>, Error> {
    let on = |place: RunsOn| -> Vec<&Job> {
        jobs.iter().filter(|job| RunsOn::from_job(job) == place).collect()
    };
    let of_seeds = |job: &Job| -> Vec<Job> {
        seeds(job.seed, count).map(|seed| job.with_seed(seed)).collect()
    };
    let of_host = on(RunsOn::Host);
    if apply && of_host.is_empty() {
        let message = "--change-settings is for the running kernel; give --on kernel, or remove it";
        return Err(Error::Usage(message.to_string()));
    }
    // Before the model runs, so that a job that cannot run here fails immediately.
    // One job for each seed: they share boots.
    let of_images: Vec<Job> = on(RunsOn::Image).into_iter().flat_map(of_seeds).collect();
    let booted = prepare(&engines.boot(), &of_images.iter().collect::<Vec<_>>())?;
    // Outlives its jobs, so that a signal undoes their changes until they are undone in order.
    let host = (!of_host.is_empty()).then(|| engines.host(apply)).transpose()?;
    let measured = host.as_ref().map(|host| prepare(host, &of_host)).transpose()?;
    let measured = measured.unwrap_or_default();
    let mut models = Vec::new();
    for (job, profile) in jobs.iter().zip(&mut *profiles) {
        let io_bytes = io_bytes(job, &of_host, &measured);
        profile.device.io_bytes = io_bytes.unwrap_or(profile.device.io_bytes);
        if RunsOn::from_job(job) == RunsOn::Model {
            // One job for each seed, so that seeds run in parallel too.
            let seeds = of_seeds(job);
            models.extend(prepare(&engines.model(*profile), &seeds.iter().collect::<Vec<_>>())?);
        }
    }
    let total = turns(&models) + turns(&measured) * count + turns(&booted);
    let progress = engines.progress(Some(total));
    let mut models = run_in_parallel(models, count, &*progress)?.into_iter();
    let mut measured = run_alternating(measured, count, &*progress)?.into_iter();
    let mut booted = run_by_batch(booted, count, &*progress)?.into_iter();
    let ran = |job: &Job| {
        let all = match RunsOn::from_job(job) {
            RunsOn::Model => &mut models,
            RunsOn::Host => &mut measured,
            RunsOn::Image => &mut booted,
        };
        provenance::stamped(all.next().expect("each job has run"))
    };
    Ok(jobs.iter().map(ran).collect())
}

fn prepare<E: Engine<Error: Into<Error>>>(
    engine: &E,
    jobs: &[&Job],
) -> Result<Vec<E::Ready>, Error> {
    engine.prepare_all(jobs).map_err(Into::into)
}

/// Number of turns of `ready` for one seed.
fn turns(ready: &[impl ReadyJob]) -> u64 {
    ready.iter().map(|ready| ready.turns()).sum()
}

/// Runs each of `ready` with its own seed, in parallel. Each `count` consecutive ones are one job.
fn run_in_parallel<R: ReadyJob<Error: Into<Error>> + Send>(
    ready: Vec<R>,
    count: u64,
    progress: &dyn Progress,
) -> Result<Vec<JobRuns>, Error> {
    let run = |ready: R| run_all_turns(ready, progress);
    Ok(merge_seeds(parallel::map(ready, run)?, count))
}

/// Runs each of `ready` with its own seed, grouped by boot. Each `count` consecutive ones are one
/// job.
fn run_by_batch<R: ReadyJob<Error: Into<Error>>>(
    ready: Vec<R>,
    count: u64,
    progress: &dyn Progress,
) -> Result<Vec<JobRuns>, Error> {
    let mut waiting: Vec<(usize, R)> = ready.into_iter().enumerate().collect();
    waiting.sort_by_key(|(_, ready)| ready.batch());
    let mut done = Vec::with_capacity(waiting.len());
    for (number, ready) in waiting {
        done.push((number, run_all_turns(ready, progress)?));
    }
    done.sort_by_key(|(number, _)| *number);
    Ok(merge_seeds(done.into_iter().map(|(_, done)| done).collect(), count))
}

/// Runs all turns of `ready` with its own seed.
fn run_all_turns<R: ReadyJob<Error: Into<Error>>>(
    mut ready: R,
    progress: &dyn Progress,
) -> Result<(R, Vec<Run>), Error> {
    let seed = ready.seed();
    let mut runs = Vec::new();
    for _ in 0..ready.turns() {
        runs.extend(ready.take_turn(seed).map_err(Into::into)?);
        progress.advance();
    }
    Ok((ready, runs))
}

/// Joins each `count` consecutive results, which are one job's seeds.
fn merge_seeds<R: ReadyJob<Error: Into<Error>>>(
    done: Vec<(R, Vec<Run>)>,
    count: u64,
) -> Vec<JobRuns> {
    let mut done = done.into_iter();
    let mut ran = Vec::new();
    while let Some((first, mut runs)) = done.next() {
        let mut others = Vec::new();
        for (other, of_other) in done.by_ref().take(count as usize - 1) {
            runs.extend(of_other);
            others.push(other.into_job_runs(Vec::new()));
        }
        let mut first = first.into_job_runs(runs);
        for other in others {
            console::add_noted(&mut first.environment, &other.environment);
        }
        ran.push(first);
    }
    ran
}

/// Runs one turn of each of `ready` in rotation until all have run with `count` seeds, so that a
/// change of the machine's load affects all of them.
fn run_alternating<R: ReadyJob<Error: Into<Error>>>(
    ready: Vec<R>,
    count: u64,
    progress: &dyn Progress,
) -> Result<Vec<JobRuns>, Error> {
    let with_turns = |ready: R| {
        let turns = ready.turns();
        let seeds = seeds(ready.seed(), count);
        let seeds = seeds.flat_map(|seed| (0..turns).map(move |_| seed)).collect();
        (ready, seeds, Vec::new())
    };
    let mut jobs: Vec<(R, Vec<u64>, Vec<Run>)> = ready.into_iter().map(with_turns).collect();
    let most = jobs.iter().map(|(_, seeds, _)| seeds.len()).max().unwrap_or(0);
    for turn in 0..most {
        for (ready, seeds, runs) in &mut jobs {
            let Some(seed) = seeds.get(turn) else { continue };
            runs.extend(ready.take_turn(*seed).map_err(Into::into)?);
            progress.advance();
        }
    }
    Ok(jobs.into_iter().map(|(ready, _, runs)| ready.into_job_runs(runs)).collect())
}

/// The engine of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsOn {
    /// In the model.
    Model,
    /// On the running kernel.
    Host,
    /// On a kernel booted in a guest.
    Image,
}

impl RunsOn {
    fn from_job(job: &Job) -> RunsOn {
        match (job.engine, job.image.is_some()) {
            (EngineKind::Model, _) => RunsOn::Model,
            (EngineKind::Kernel, false) => RunsOn::Host,
            (EngineKind::Kernel, true) => RunsOn::Image,
        }
    }
}

/// Maximum request size, in bytes, of the device from which one of the host's jobs reads the file
/// of `job`. The model needs the same for equal decisions.
fn io_bytes(job: &Job, of_host: &[&Job], ready: &[impl ReadyJob]) -> Option<u64> {
    let device = |job: &Job| device(&job.machine);
    let same = of_host.iter().position(|host| device(host) == device(job));
    ready.get(same.unwrap_or(0))?.io_bytes()
}

/// The properties by which the kernel engine places the files of a job.
fn device(machine: &JobMachine) -> (PageCount, Filesystem, u64) {
    (machine.read_ahead, machine.fs, machine.block_bytes)
}
