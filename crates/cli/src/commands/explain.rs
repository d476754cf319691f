//! `filemap explain`.

#[cfg(test)]
mod tests;

mod remedies;

use filemap_core::decision::Log;
use filemap_core::series::Series;
use filemap_job::{Counters, EngineKind, Job, Record, Run, Seen, ShownKind};
use filemap_kernel::trace::Observed;
use filemap_model::{Profile, trace};
use filemap_study::explain::{
    self, Explainer, Explanation, ProgramExplainer, ProgramExplanation, Sight,
};
use serde_json::{Map, json};

use super::with_seeds;
use crate::Outcome;
use crate::args::ExplainArgs;
use crate::error::Error;
use crate::given::{self, Given, not_of_tables};
use crate::machine::Machine;
use filemap_study::engine::{self};
use filemap_study::host;
use filemap_study::input;
use filemap_study::kernel_match;
use filemap_study::provenance;
use filemap_study::seeds::{self, Cell};
use filemap_study::traced_job;

/// Says where a job's bytes came from, and why readahead stopped or did not.
pub fn run(args: ExplainArgs) -> Result<Outcome, Error> {
    args.job.check_one_kernel()?;
    let given = Given::new(args.job_file.clone(), args.job.clone())?;
    explained(&given, &args).map_err(|error| given.in_file(error))
}

fn explained(given: &Given, args: &ExplainArgs) -> Result<Outcome, Error> {
    let has_tables = given.written.tables().is_some();
    let of_one_file = [("--seeds", args.seeds.is_some()), ("--svg", args.svg.is_some())];
    if let Some((flag, _)) = of_one_file.into_iter().find(|(_, is_given)| *is_given && has_tables) {
        return Err(not_of_tables(flag, &given.name()));
    }
    let svg = ("--svg", args.svg.as_deref());
    let mut output = args.output.open(&given.inputs, &[svg])?;
    if given.written.flags().runs.is_some_and(|runs| runs != 1) {
        let message = "--runs does not go with explain, which reads one log; remove it";
        return Err(Error::Usage(message.to_string()));
    }
    let mut written = given.written.clone();
    let found = given.resolve(&mut written)?;
    let profile = found.on_device(given::profile(&mut written)?);
    let job = given.validate(&written)?;
    check(&job)?;
    kernel_match::check(&job)?;
    let mut warnings = found.warnings;
    warnings.extend(job.without_effect());
    warnings.extend(kernel_match::warnings(given.kernel().as_deref(), &[&job])?);
    let command = with_seeds(given.command("explain", &job), args.seeds);
    if has_tables {
        let (explanation, mut record) = by_file(&job, &profile)?;
        given.leave_lists(&mut record);
        record.warnings = warnings;
        output.write(&explain::of_program(&explanation, &job, &record, command))?;
        return Ok(Outcome::Done);
    }
    let seeds = args.seeds.unwrap_or(1);
    if job.engine == EngineKind::Kernel && seeds > 1 {
        let message = "--seeds: a log of a kernel is of one seed; leave it out, or give --on model";
        return Err(Error::CannotRun(message.to_string()));
    }
    let begun = seeds::spent();
    let (explanation, mut record) = match job.engine {
        EngineKind::Model => of_model(&job, &profile, seeds)?,
        EngineKind::Kernel => of_kernel(&job)?,
    };
    let took = seeds::spent() - begun;
    record.warnings = warnings;
    if let Some(target) = output.take("--svg") {
        target.write(explain::svg(&explanation, &job, &record).as_bytes())?;
    }
    if args.seeds.is_none() {
        let cell = Cell { name: "this job", job: &job, profile: &profile, record: &record };
        let warnings = seeds::warnings(&[cell], took)?;
        record.warnings.extend(warnings);
    }
    let remedies = remedies::of(&job, &profile, &record)?;
    output.write(&explain::report(&explanation, &job, &record, &remedies, command))?;
    Ok(Outcome::Done)
}

/// Refuses what there is no log of a kernel of.
fn check(job: &Job) -> Result<(), Error> {
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
            "the series {} are not in the running kernel; give --on model, or the kernel that was \
             built with them to --image",
            job.rules.series
        ));
    }
    if job.machine.cache_limit.is_some() {
        return refuse(
            "explain --on kernel sets no memory limit; leave the limit out, or give --on model"
                .to_string(),
        );
    }
    Ok(())
}

/// What a job with tables reads, by file.
fn by_file(job: &Job, profile: &Profile) -> Result<(ProgramExplanation, Record), Error> {
    let mut explainer = ProgramExplainer::new(job);
    trace(job, profile, &mut explainer)?;
    Ok((explainer.finish(), ran(job, profile, 1)?))
}

fn of_model(job: &Job, profile: &Profile, seeds: u64) -> Result<(Explanation, Record), Error> {
    let mut explainer = Explainer::new(job, Sight::Every);
    trace(job, profile, &mut explainer)?;
    Ok((explainer.finish(), ran(job, profile, seeds)?))
}

/// The record of `job` in the model.
fn ran(job: &Job, profile: &Profile, seeds: u64) -> Result<Record, Error> {
    let (jobs, profiles) = (std::slice::from_ref(job), &mut [*profile]);
    let mut records = engine::run_jobs(&Machine, jobs, profiles, seeds, false)?;
    Ok(records.pop().expect("one job has one record"))
}

fn of_kernel(job: &Job) -> Result<(Explanation, Record), Error> {
    let observed = traced_job::observe(job, &Machine)?;
    let mut explainer = Explainer::new(job, sight(observed.seen));
    for decision in &observed.decisions {
        explainer.record(*decision);
    }
    let explanation = explainer.finish();
    let record = record(job, &explanation, &observed);
    Ok((explanation, record))
}

/// What of the counter a kernel shows.
fn sight(seen: Seen) -> Sight {
    let entered = [ShownKind::Sync, ShownKind::Async];
    if entered.into_iter().all(|kind| seen.has(kind)) { Sight::Entered } else { Sight::Nothing }
}

/// What the log itself says of the run.
fn record(job: &Job, explanation: &Explanation, observed: &Observed) -> Record {
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
    let unseen = match observed.seen.has(ShownKind::Window) {
        true => "",
        false => "; it has no tracepoint of a window, which is told by the folios that it added",
    };
    let scope = format!("{kernel}, tracepoints of one child process, its file cold before{unseen}");
    environment.insert("scope".into(), scope.into());
    let counters = Counters {
        accesses: Some(explanation.course.accesses()),
        data_pages_read: Some(explanation.pages_read()),
        bytes_read: observed.read_bytes,
        ..Counters::default()
    };
    // A trace takes time, and an emulator more.
    let elapsed_ns = job.image.is_none().then_some(observed.elapsed_ns);
    let run = Run { seed: job.seed, elapsed_ns, counters, ..Run::default() };
    Record::new(job, EngineKind::Kernel.name(), environment, vec![run])
}
