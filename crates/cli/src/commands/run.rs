//! `filemap run`.

use filemap_job::{EngineKind, Record};
use filemap_report::record;

use super::job_spec;
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
    let mut spec = job_spec(args.job_file.as_deref(), args.job)?;
    host::resolve(&mut spec)?;
    let profile = input::profile(spec.machine.as_deref())?;
    let job = spec.validate(input::host_release().as_deref())?;
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
    let command = match args.job_file {
        Some(path) if job.phases.len() > 1 => format!("filemap run {path}"),
        _ => job.command(),
    };
    output.write(&record::report(&record, command))?;
    Ok(Outcome::Done)
}

fn one(records: Vec<Record>) -> Record {
    records.into_iter().next().expect("one job has one record")
}
