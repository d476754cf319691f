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
use crate::output::{Output, Target};

/// Runs one job and prints its record.
pub fn run(args: RunArgs) -> Result<Outcome, Error> {
    args.job.check_one_kernel()?;
    let (asked, mut spec) = Asked::new(args.job_file, args.job)?;
    let found = host::resolve(&mut spec)?;
    let profile = input::profile(spec.machine.as_deref())?;
    let profile = found.on_device(profile, spec.machine.is_some());
    let job = spec.validate(input::host_release().as_deref())?;
    judged::check(&job)?;
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
