//! Runs and explains a job, in the model or on a traced kernel.

use filemap_core::decision::{Decision, Log};
use filemap_core::series::Series;
use filemap_job::{Counters, EngineKind, Job, Record, Run, ShownKind, ShownKinds};
use filemap_kernel::trace::Observation;
use filemap_model::{Profile, trace};
use serde_json::{Map, json};

use super::counter::CounterVisibility;
use super::explainer::{Explainer, Explanation};
use super::history::RunHistory;
use super::origin::{PerOrigin, SourceTotal};
use super::record::ExplainRecord;
use super::remedies::Remedies;
use super::trace_explainer::TraceExplainer;
use crate::engine::{self, Engines};
use crate::error::Error;
use crate::job_input::{JobInput, PlannedJob};
use crate::seeds;
use crate::{console, host, input, provenance, traced_job};

/// Refuses jobs that the kernel engine cannot trace.
fn check_traceable(job: &Job, seeds: Option<u64>) -> Result<(), Error> {
    let refuse = |message: String| Err(Error::CannotRun(message));
    if job.threads.len() > 1 {
        return refuse(format!(
            "a trace of a kernel follows one thread, and this job has {}; give --on model, or \
             filemap compare --on model,kernel for the counters of both",
            job.threads.len()
        ));
    }
    if job.processes.len() > 1 {
        return refuse(
            "a trace of a kernel follows one process, and this job has more; give --on model, or \
             filemap compare --on model,kernel for the counters of both"
                .to_string(),
        );
    }
    if job.threads.iter().any(|thread| thread.rounds.is_timed()) {
        return refuse(
            "a trace of a kernel does not show how many rounds 'for' had time for; give repeat \
             instead, or --on model"
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
        let message =
            "--seeds: a trace of a kernel is of one seed; leave it out, or give --on model";
        return refuse(message.to_string());
    }
    Ok(())
}

/// Explains the first of `seeds` runs of the job `input`.
///
/// # Errors
/// When the job cannot be explained, with a hint on what can; errors of the engine.
pub fn run(
    input: &JobInput,
    seeds: Option<u64>,
    engines: &impl Engines,
) -> Result<ExplainRecord, Error> {
    let planned = input.plan()?;
    let PlannedJob { job, profile, .. } = &planned;
    let begun = seeds::process_cpu_time();
    let (explanation, mut record) = match job.engine {
        EngineKind::Model => explain_model(job, profile, seeds.unwrap_or(1), engines)?,
        EngineKind::Kernel => {
            check_traceable(job, seeds)?;
            explain_kernel(job, engines)?
        }
    };
    planned.warn(&mut record, seeds, seeds::process_cpu_time() - begun)?;
    let pages = |sources: &PerOrigin<SourceTotal>| sources.iter().map(|(_, own)| own.pages).sum();
    let pages_read: Vec<u64> = explanation.mappings.iter().map(pages).collect();
    let remedies = Remedies::try_settings(job, profile, &record, &pages_read)?;
    let command = input.command("explain", job, &seeds::words(seeds));
    Ok(ExplainRecord::new(explanation, job, &record, remedies, command))
}

/// The history of the first run of `record`, a record of `job`; `None` unless the model ran it.
///
/// # Errors
/// Errors of the model.
pub(crate) fn run_history(
    job: &Job,
    profile: &Profile,
    record: &Record,
) -> Result<Option<RunHistory>, Error> {
    // A table with a count has only the sum over its files in the record.
    if job.engine != EngineKind::Model || job.is_counted() {
        return Ok(None);
    }
    let mut explainer = model_explainer(job, record);
    trace(job, profile, &mut explainer)?;
    Ok(Some(explainer.finish().history))
}

/// An explainer for a run of `job` in the model; the first run of `record` has the pages read.
fn model_explainer<'a>(job: &'a Job, record: &Record) -> Explainer<'a> {
    let by_table = &record.runs[0].files;
    let pages = |table: &usize| by_table.get(*table).and_then(|file| file.data_pages_read);
    let pages_read: Vec<u64> =
        job.tables.files.iter().map(|table| pages(table).unwrap_or(0)).collect();
    Explainer::new(job, CounterVisibility::Every, &pages_read)
}

fn explain_model(
    job: &Job,
    profile: &Profile,
    seeds: u64,
    engines: &impl Engines,
) -> Result<(Explanation, Record), Error> {
    let (jobs, profiles) = (std::slice::from_ref(job), &mut [*profile]);
    let mut records = engine::run_jobs(engines, jobs, profiles, seeds, false)?;
    let record = records.pop().expect("one job has one record");
    let mut explainer = model_explainer(job, &record);
    trace(job, profile, &mut explainer)?;
    Ok((explainer.finish(), record))
}

fn explain_kernel(job: &Job, engines: &impl Engines) -> Result<(Explanation, Record), Error> {
    let observed = traced_job::observe_kernel(job, engines)?;
    let mut pages_read = vec![0; job.files.len()];
    let mut at = 0;
    for decision in &observed.decisions {
        match *decision {
            Decision::File { file } => at = file.number(),
            Decision::Added { order, folios, .. } => pages_read[at] += folios << order.0,
            _ => {}
        }
    }
    let mut explainer = TraceExplainer::new(job, visibility(observed.shown), &pages_read);
    for decision in &observed.decisions {
        explainer.record(*decision);
    }
    let explanation = explainer.finish();
    let record = traced_record(job, &explanation, &observed);
    Ok((explanation, record))
}

/// How much of `mmap_miss` a kernel with the tracepoints `seen` shows.
fn visibility(seen: ShownKinds) -> CounterVisibility {
    let entered = [ShownKind::Sync, ShownKind::Async];
    if entered.into_iter().all(|kind| seen.has(kind)) {
        CounterVisibility::Entered
    } else {
        CounterVisibility::Hidden
    }
}

/// The record of a traced run.
fn traced_record(job: &Job, explanation: &Explanation, observed: &Observation) -> Record {
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
        "; it has no tracepoint of a window, whose pages are those of the folios that it added"
    };
    let files = if job.files.len() == 1 { "file" } else { "files" };
    let scope =
        format!("{kernel}, tracepoints of one child process, its {files} cold before{unseen}");
    environment.insert("scope".into(), scope.into());
    console::add_incidents(&mut environment, &observed.warnings, "");
    let counters = Counters {
        accesses: Some(explanation.history.accesses),
        data_pages_read: Some(explanation.pages_read()),
        bytes_read: observed.read_bytes,
        ..Counters::default()
    };
    // The elapsed time includes the overhead of the trace; under emulation it is meaningless.
    let elapsed_ns = job.image.is_none().then_some(observed.elapsed_ns);
    let run = Run { seed: job.seed, elapsed_ns, counters, ..Run::default() };
    Record::new(job, EngineKind::Kernel.name(), environment, vec![run])
}
