//! Explains a job: on which engine its log comes about, and what else is run for it.

use filemap_core::decision::Log;
use filemap_core::series::Series;
use filemap_job::{Counters, EngineKind, Job, Record, Run, Seen, ShownKind};
use filemap_kernel::trace::Observation;
use filemap_model::{Profile, trace};
use serde_json::{Map, json};

use super::counter::Sight;
use super::courses::Courses;
use super::explainer::Explainer;
use super::explanation::Explanation;
use super::history::History;
use super::origin::CausePages;
use super::record::Explained;
use super::traced::Traced;
use super::tried;
use crate::engine::{self, Engines};
use crate::error::Error;
use crate::given::Given;
use crate::planned::Planned;
use crate::seeds::{self, with_seeds};
use crate::{console, host, input, provenance, traced_job};

/// Refuses what there is no log of a kernel of.
fn check(job: &Job, seeds: Option<u64>) -> Result<(), Error> {
    if job.engine == EngineKind::Model {
        return Ok(());
    }
    let refuse = |message: String| Err(Error::CannotRun(message));
    if job.of_flags.is_none() {
        return refuse(
            "explain reads the model's log of a program; give --on model, or filemap compare --on \
             model,kernel for the counters of both"
                .to_string(),
        );
    }
    if job.rules.series != Series::BASELINE && job.image.is_none() {
        return refuse(format!(
            "the running kernel does not have {}; give --on model, or the kernel that was built \
             with it to --image",
            job.rules.series
        ));
    }
    if job.machine.cache_limit.is_some() {
        return refuse(
            "explain --on kernel sets no memory limit; leave the limit out, or give --on model"
                .to_string(),
        );
    }
    if seeds.is_some_and(|seeds| seeds > 1) {
        let message = "--seeds: a log of a kernel is of one seed; leave it out, or give --on model";
        return refuse(message.to_string());
    }
    Ok(())
}

/// Explains the job that was `given`, of the first of so many `seeds`.
///
/// # Errors
/// What cannot be explained, with what can, and those of the engine.
pub fn run(given: &Given, seeds: Option<u64>, engines: &impl Engines) -> Result<Explained, Error> {
    let planned = Planned::of(given)?;
    let Planned { job, profile, .. } = &planned;
    check(job, seeds)?;
    let begun = seeds::spent();
    let (explanation, mut record) = match job.engine {
        EngineKind::Model => of_model(job, profile, seeds.unwrap_or(1), engines)?,
        EngineKind::Kernel => of_kernel(job, engines)?,
    };
    planned.warn(&mut record, seeds, seeds::spent() - begun)?;
    let remedies = match job.of_flags {
        Some(_) => tried::remedies(job, profile, &record)?,
        None => None,
    };
    let command = with_seeds(given.command("explain", job), seeds);
    Ok(Explained::new(&explanation, job, &record, remedies, command))
}

/// The course of the first run of `record`, of `job`, where it runs in the model.
///
/// # Errors
/// Those of the model.
pub fn course(job: &Job, profile: &Profile, record: &Record) -> Result<Option<Courses>, Error> {
    // One table can stand for many files, of which the record has the sum.
    if job.engine != EngineKind::Model || job.is_counted() {
        return Ok(None);
    }
    let read = record.runs[0].files.iter().map(|file| file.data_pages_read.unwrap_or(0));
    let read: Vec<u64> = read.collect();
    let mut explainer = if job.of_flags.is_some() {
        Explainer::new(job, Sight::Every)
    } else {
        Explainer::of_course(job, &read)
    };
    trace(job, profile, &mut explainer)?;
    let Explanation { amounts, misses, history, .. } = explainer.finish();
    Ok(history.map(|courses| match courses {
        Courses::OneFile(history) => Courses::OneFile(Box::new(History {
            causes: Some(CausePages::all(&amounts, job.page_size())),
            mmap_miss: misses.map(|misses| misses.course.points().collect()),
            ..*history
        })),
        courses => courses,
    }))
}

fn of_model(
    job: &Job,
    profile: &Profile,
    seeds: u64,
    engines: &impl Engines,
) -> Result<(Explanation, Record), Error> {
    let mut explainer = Explainer::new(job, Sight::Every);
    trace(job, profile, &mut explainer)?;
    let (jobs, profiles) = (std::slice::from_ref(job), &mut [*profile]);
    let mut records = engine::run_jobs(engines, jobs, profiles, seeds, false)?;
    Ok((explainer.finish(), records.pop().expect("one job has one record")))
}

fn of_kernel(job: &Job, engines: &impl Engines) -> Result<(Explanation, Record), Error> {
    let observed = traced_job::observe(job, engines)?;
    let mut explainer = Traced::new(job, sight(observed.shown));
    for decision in &observed.decisions {
        explainer.record(*decision);
    }
    let explanation = explainer.finish();
    let record = traced(job, &explanation, &observed);
    Ok((explanation, record))
}

/// What of the counter a kernel shows.
fn sight(seen: Seen) -> Sight {
    let entered = [ShownKind::Sync, ShownKind::Async];
    if entered.into_iter().all(|kind| seen.has(kind)) { Sight::Entered } else { Sight::Nothing }
}

/// What the log itself says of the run.
fn traced(job: &Job, explanation: &Explanation, observed: &Observation) -> Record {
    let mut environment = Map::new();
    provenance::stamp(&mut environment, EngineKind::Kernel.name());
    environment.insert("kernel".into(), json!(input::host_release()));
    environment.insert("pages_evicted_by_others".into(), observed.evicted_by_others.into());
    environment.insert("runs_repeated_after_that".into(), observed.repeated.into());
    let kernel = match &job.image {
        None => "the running kernel".to_string(),
        Some(image) => {
            let release = host::image_release(&image.path).ok();
            environment.insert("image".into(), image.path.clone().into());
            environment.insert("kernel".into(), json!(release));
            format!("Linux {} booted under QEMU", release.unwrap_or_default())
        }
    };
    let unseen = if observed.shown.has(ShownKind::Window) {
        ""
    } else {
        "; it has no tracepoint of a window, which is told by the folios that it added"
    };
    let scope = format!("{kernel}, tracepoints of one child process, its file cold before{unseen}");
    environment.insert("scope".into(), scope.into());
    console::note(&mut environment, &observed.warnings, "");
    let counters = Counters {
        accesses: explanation.misses.as_ref().map(|misses| misses.course.accesses()),
        data_pages_read: Some(explanation.pages_read()),
        bytes_read: observed.read_bytes,
        ..Counters::default()
    };
    // A trace takes time, and an emulator more.
    let elapsed_ns = job.image.is_none().then_some(observed.elapsed_ns);
    let run = Run { seed: job.seed, elapsed_ns, counters, ..Run::default() };
    Record::new(job, EngineKind::Kernel.name(), environment, vec![run])
}
