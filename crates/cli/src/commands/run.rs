//! `filemap run`.

use filemap_job::{EngineKind, Job};
use filemap_model::trace;
use filemap_study::run::{self, RunOptions, RunRecord};
use filemap_study::traced_job;

use super::show_job;
use crate::Outcome;
use crate::args::RunArgs;
use crate::engines::RealEngines;
use crate::error::Error;
use crate::export;
use crate::job_input::{self, JobInput};
use crate::log::LineLog;
use crate::output::{Inputs, Output};

/// Runs one job and prints its record.
pub fn run(args: RunArgs) -> Result<Outcome, Error> {
    let (input, inputs) = job_input::read(args.job_file.as_deref(), &args.job)?;
    if args.show_job {
        return show_job::run(&input);
    }
    let recorded = recorded(&input, &inputs, &args);
    let (output, record) = recorded.map_err(|error| input.in_file(error))?;
    output.write_with_page(&record.report(args.asked.verbose), &record.report(false))?;
    Ok(Outcome::Done)
}

/// Runs the job. Returns its record and the outputs for it.
fn recorded(
    input: &JobInput,
    inputs: &Inputs,
    args: &RunArgs,
) -> Result<(Output, RunRecord), Error> {
    args.export.as_deref().map_or(Ok(()), export::check_timeline)?;
    let others = [("--log", args.log.as_deref()), ("--export", args.export.as_deref())];
    let mut output = args.output.open(inputs, &others)?;
    let planned = input.plan()?;
    if args.log.is_some() {
        check_log(&planned.job, args.asked.repeated.seeds)?;
    }
    if args.export.is_some() {
        check_export(&planned.job, args.asked.repeated.seeds)?;
    }
    if let Some(target) = output.take("--log") {
        let mut log = LineLog::new(target);
        match planned.job.engine {
            EngineKind::Model => {
                // All runs make the same decisions.
                trace(&planned.job, &planned.profile, &mut log)?;
                log.finish()?;
            }
            // A separate run, as tracing takes time.
            EngineKind::Kernel => {
                log.write_observed(&traced_job::observe_kernel(&planned.job, &RealEngines)?)?
            }
        }
    }
    if let Some(target) = output.take("--export") {
        // All runs are the same.
        export::write_timeline(&planned.job, &planned.profile, target)?;
    }
    let asked = RunOptions {
        seeds: args.asked.repeated.seeds,
        apply: args.asked.change_settings,
        history: output.writes_json_or_page(),
    };
    Ok((output, run::run(planned, &RealEngines, asked)?))
}

/// Rejects `--export` for jobs without virtual time, and for several seeds.
fn check_export(job: &Job, seeds: Option<u64>) -> Result<(), Error> {
    if seeds.is_some_and(|seeds| seeds > 1) {
        let message = "--export is for one seed; give that with --seed, and leave out --seeds";
        return Err(Error::Usage(message.to_string()));
    }
    if job.engine == EngineKind::Kernel {
        let message = "--export shows the model's time; give --on model, or --log for a kernel";
        return Err(Error::CannotRun(message.to_string()));
    }
    Ok(())
}

/// Rejects `--log` for jobs without a log.
fn check_log(job: &Job, seeds: Option<u64>) -> Result<(), Error> {
    if seeds.is_some_and(|seeds| seeds > 1) {
        let message = "--log is for one seed; give that with --seed, and leave out --seeds";
        return Err(Error::Usage(message.to_string()));
    }
    let is_one = job.threads.len() == 1 && job.processes.len() == 1;
    if job.engine == EngineKind::Kernel && !is_one {
        let message =
            "--log of a kernel is for jobs of one thread; give --on model, or leave it out";
        return Err(Error::CannotRun(message.to_string()));
    }
    Ok(())
}
