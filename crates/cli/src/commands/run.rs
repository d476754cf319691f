//! `filemap run`.

use filemap_job::{EngineKind, Record};
use filemap_report::record;

use super::Asked;
use crate::Outcome;
use crate::args::RunArgs;
use crate::engine;
use crate::error::Error;
use crate::host;
use crate::input;
use crate::judged;
use crate::log::LineLog;
use crate::output::Output;

/// Runs one job and prints its record.
pub fn run(args: RunArgs) -> Result<Outcome, Error> {
    args.job.check_one_kernel()?;
    let (asked, mut spec) = Asked::new(args.job_file, args.job)?;
    let log = ("--log", args.log.as_deref());
    let mut output = Output::open(&args.output, &asked.inputs, &[log])?;
    let found = host::resolve(&mut spec)?;
    let profile = found.on_device(input::profile(&mut spec)?);
    let job = spec.validate(input::host_release().as_deref())?;
    judged::check(&job)?;
    if job.engine == EngineKind::Kernel && args.log.is_some() {
        let message = "--log is of the model's decisions; give --on model, or filemap conform";
        return Err(Error::CannotRun(message.to_string()));
    }
    if let Some(target) = output.take("--log") {
        let mut log = LineLog::new(target);
        // The model's runs decide all the same.
        filemap_model::trace(&job, &profile, &mut log)?;
        log.finish()?;
    }
    let jobs = std::slice::from_ref(&job);
    let mut record = one(engine::run_all(jobs, &profile, args.apply)?);
    record.warnings = found.warnings;
    record.warnings.extend(job.without_effect());
    record.warnings.extend(judged::warnings(asked.kernel.as_deref(), jobs)?);
    output.write(&record::report(&record, asked.command("run", &job)))?;
    Ok(Outcome::Done)
}

fn one(records: Vec<Record>) -> Record {
    records.into_iter().next().expect("one job has one record")
}
