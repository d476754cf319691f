//! `filemap run`.

use filemap_core::rules::Kernel;
use filemap_job::{EngineKind, Job, Record};
use filemap_report::record;

use super::{Asked, program};
use crate::Outcome;
use crate::args::RunArgs;
use crate::engine;
use crate::error::Error;
use crate::host;
use crate::input;
use crate::log::LineLog;
use crate::output::{Output, Target};

/// Runs one job and prints its record.
pub fn run(args: RunArgs) -> Result<Outcome, Error> {
    if args.job.image.len() > 1 {
        let message = "--image is given several times; give one, or filemap compare";
        return Err(Error::Usage(message.to_string()));
    }
    if let Some(path) = &args.job_file
        && let Some(spec) = input::program(path)?
    {
        let path = path.clone();
        return program::run(&spec, &path, args);
    }
    let (asked, mut spec) = Asked::new(args.job_file, args.job)?;
    host::resolve(&mut spec)?;
    let profile = input::profile(spec.machine.as_deref())?;
    let release = input::host_release();
    let job = spec.validate(release.as_deref())?;
    let nearest = release.as_deref().and_then(Kernel::nearest);
    if runs_here(&job) && nearest.is_some_and(|nearest| nearest != job.rules.kernel) {
        return Err(Error::CannotRun(format!(
            "--kernel {}: the running kernel has rules of its own; leave it out, or give --on model",
            job.rules.kernel.name()
        )));
    }
    if job.engine == EngineKind::Kernel && args.log.is_some() {
        let message = "--log is of the model's decisions; give --on model, or filemap conform";
        return Err(Error::CannotRun(message.to_string()));
    }
    let output = Output::open(&args.output, args.log.as_deref().map(|path| ("--log", path)))?;
    if let Some(path) = args.log.as_deref() {
        let alone = path == "-" && args.output.json.is_none();
        let mut log = LineLog::new(Target::open(path)?, alone)?;
        // The model's runs decide all the same.
        filemap_model::trace(&job, &profile, &mut log)?;
        log.finish()?;
    }
    let record = one(engine::run_all(std::slice::from_ref(&job), &profile, args.apply)?);
    output.write(&record::report(&record, asked.command("run", &job)))?;
    Ok(Outcome::Done)
}

/// Whether the job is for the running kernel.
fn runs_here(job: &Job) -> bool {
    job.engine == EngineKind::Kernel && job.image.is_none()
}

fn one(records: Vec<Record>) -> Record {
    records.into_iter().next().expect("one job has one record")
}
