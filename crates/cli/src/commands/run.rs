//! `filemap run`.

use filemap_job::{EngineKind, Record};
use filemap_report::record;

use super::{Asked, program, with_seeds};
use crate::Outcome;
use crate::args::RunArgs;
use crate::engine;
use crate::error::Error;
use crate::host;
use crate::input;
use crate::judged::{self, Judged};
use crate::log::LineLog;
use crate::output::Output;
use crate::seeds::{self, Cell};

/// Runs one job and prints its record.
pub fn run(args: RunArgs) -> Result<Outcome, Error> {
    args.job.check_one_kernel()?;
    if let Some(path) = &args.job_file
        && let Some(spec) = input::program(path)?
    {
        let path = path.clone();
        return program::run(spec, &path, args);
    }
    let (asked, mut spec) = Asked::new(args.job_file, args.job)?;
    let log = ("--log", args.log.as_deref());
    let mut output = Output::open(&args.output, &asked.inputs, &[log])?;
    let found = host::resolve(&mut spec)?;
    let mut profile = found.on_device(input::profile(&mut spec)?);
    let job = spec.validate(input::host_release().as_deref())?;
    judged::check(&Judged::from(&job))?;
    if job.engine == EngineKind::Kernel && args.log.is_some() {
        let message = "--log is of the model's decisions; give --on model, or filemap conform";
        return Err(Error::CannotRun(message.to_string()));
    }
    if args.seeds.is_some_and(|seeds| seeds > 1) && args.log.is_some() {
        let message = "--log is of one seed; give that with --seed, and leave out --seeds";
        return Err(Error::Usage(message.to_string()));
    }
    if let Some(target) = output.take("--log") {
        let mut log = LineLog::new(target);
        // The model's runs decide all the same.
        filemap_model::trace(&job, &profile, &mut log)?;
        log.finish()?;
    }
    let (jobs, seeds) = (std::slice::from_ref(&job), args.seeds.unwrap_or(1));
    let mut record =
        one(engine::run_seeds(jobs, std::slice::from_mut(&mut profile), seeds, args.apply)?);
    record.warnings = found.warnings;
    record.warnings.extend(job.without_effect());
    record.warnings.extend(judged::warnings(asked.kernel.as_deref(), &Judged::of(jobs))?);
    if args.seeds.is_none() {
        let (job, profile) = (&job, &profile);
        let cell = Cell { name: "this job", job, profile, record: &record };
        record.warnings.extend(seeds::warnings(&[cell])?);
    }
    let command = with_seeds(asked.command("run", &job), args.seeds);
    output.write(&record::report(&record, &job, args.verbose, command))?;
    Ok(Outcome::Done)
}

fn one(records: Vec<Record>) -> Record {
    records.into_iter().next().expect("one job has one record")
}
